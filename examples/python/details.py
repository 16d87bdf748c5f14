"""The details of an error of a node."""

import grpc
from google.rpc import error_details_pb2, status_pb2


def details(error):
    """Returns the reason of an error, and the seconds until a retry may succeed; None for a missing part."""
    reason, wait = None, None
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for detail in status_pb2.Status.FromString(packed).details:
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason = info.reason
        elif detail.Unpack(retry):
            wait = retry.retry_delay.ToTimedelta().total_seconds()
    if reason is None and error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        wait = 1  # Not from an rpc: the connection is lost, or the response is late.
    return reason, wait
