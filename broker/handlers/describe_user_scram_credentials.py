"""DescribeUserScramCredentials (key 50, v0).

Lists the SCRAM mechanisms of users with their iterations; without names, those of all users.
Kafka: ScramImage.describe."""

from collections import Counter

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism
from odradek.protocol.errors import ApiError, ErrorCode, shortened_message
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsCredential,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
MISSING = "Attempt to describe a user credential that does not exist: "


def handle(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    try:
        context.check_cluster(AclOperation.DESCRIBE)
    except ApiError as error:
        # As in Kafka, there is a result for each user, without the name.
        return DescribeUserScramCredentialsResponse(
            error_code=error.code,
            error_message=error.message,
            results=[
                user_with_error("", error.code, error.message)
                for _ in context.sliced(request.users or ())
            ],
        )
    times = Counter(user.name for user in context.sliced(request.users or ()))
    if not times:
        by_user = context.broker.metadata.scram_credentials.by_user
        for _, name in context.sliced(by_user):
            times[name] = 1
    results = [
        describe(context, name, count) for name, count in context.sliced(iter(times.items()))
    ]
    # As in Kafka, the message without an error is empty.
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def describe(context: RequestContext, user: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return user_with_error(user, ErrorCode.DUPLICATE_RESOURCE, f"{TWICE}{user}")
    by_user = context.broker.metadata.scram_credentials.by_user
    found = [
        DescribeUserScramCredentialsCredential(
            mechanism=mechanism, iterations=by_user[mechanism, user].iterations
        )
        for mechanism in ScramMechanism
        if (mechanism, user) in by_user
    ]
    if not found:
        return user_with_error(user, ErrorCode.RESOURCE_NOT_FOUND, f"{MISSING}{user}")
    return DescribeUserScramCredentialsResult(user=user, error_message="", credential_infos=found)


def user_with_error(user: str, code: ErrorCode, text: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user, error_code=code, error_message=shortened_message(text), credential_infos=[]
    )
