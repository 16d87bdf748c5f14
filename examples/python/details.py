"""What an error of a node says beside its sentence."""

import grpc
from google.rpc import error_details_pb2, status_pb2


def details(error):
    """Why a call failed, and the seconds after which the same call may succeed; None for what the error leaves out."""
    reason, wait = None, None
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for detail in status_pb2.Status.FromString(packed).details:
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason = info.reason
        elif detail.Unpack(retry):
            wait = retry.retry_delay.ToTimedelta().total_seconds()
    if reason is None and error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        wait = 1  # It comes from below the rpcs: the connection is lost, or the answer late.
    return reason, wait
