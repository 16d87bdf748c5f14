# Varnish in front of one node, as a cache of its plain HTTP interface: "-f gatehouse.vcl". TLS is somebody else's.
vcl 4.1;

backend node {
    .host = "127.0.0.1";
    .port = "53550";
}

sub vcl_recv {
    # The node believes it before X-Forwarded-For, and Varnish hands on what a client wrote there.
    unset req.http.Forwarded;

    # Nothing that is given to an identity is kept, and while somebody waits for an answer that is to be kept, others wait
    # with him: those who have an identity are not to be given what nobody in particular is given.
    if (req.http.identity || req.http.signature) {
        return (pass);
    }
}

sub vcl_backend_response {
    if (beresp.http.Cache-Control ~ "(?i)\b(private|no-store)\b" || beresp.http.Cache-Control !~ "(?i)\bpublic\b") {
        # It says nothing of the next request for the same path, which may be anybody's.
        set beresp.uncacheable = true;
        set beresp.ttl = 0s;
        set beresp.grace = 0s;
        return (deliver);
    }
    # Never older than what the node says.
    set beresp.grace = 0s;
    if (beresp.http.Cache-Control ~ "(?i)\bno-cache\b") {
        # Varnish would not keep it at all: it is to keep it, and to ask each time whether it is still right. What lives for
        # 0 s is never asked about; this is over before the answer is there.
        set beresp.ttl = 0.001ms;
        set beresp.keep = 1d;
        return (deliver);
    }
}
