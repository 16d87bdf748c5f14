# Caches the plain HTTP interface of one node: varnishd -f gatehouse.vcl. TLS ends before Varnish.
vcl 4.1;

backend node {
    .host = "127.0.0.1";
    .port = "53550";
}

sub vcl_recv {
    # Remove Forwarded, which Varnish would pass on from the client. The node prefers it to X-Forwarded-For.
    unset req.http.Forwarded;

    # Do not cache responses to identified callers. Nor may their requests wait for the response to an anonymous one:
    # Varnish sends one request for concurrent callers of a path, and returns its response to all of them.
    if (req.http.identity || req.http.signature) {
        return (pass);
    }
}

sub vcl_backend_response {
    if (beresp.http.Cache-Control ~ "(?i)\b(private|no-store)\b" || beresp.http.Cache-Control !~ "(?i)\bpublic\b") {
        # Do not remember this decision: the next request for the path may have a cacheable response.
        set beresp.uncacheable = true;
        set beresp.ttl = 0s;
        set beresp.grace = 0s;
        return (deliver);
    }
    # Serve no response beyond the lifetime that the node sets.
    set beresp.grace = 0s;
    if (beresp.http.Cache-Control ~ "(?i)\bno-cache\b") {
        # By default Varnish does not cache this response. Cache it, and revalidate it for each request: a TTL of 0 s
        # would disable revalidation, and this TTL ends before the response is delivered.
        set beresp.ttl = 0.001ms;
        set beresp.keep = 1d;
        return (deliver);
    }
}
