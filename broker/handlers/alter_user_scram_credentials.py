"""AlterUserScramCredentials (key 51, v0).

Sets and deletes the credentials of SCRAM users. They are in the metadata log, and in force, when
the response is sent. The client has salted and hashed the password."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.scram_changes import ScramDeletion, ScramUpsertion
from odradek.coordinator.runtime.steps import free, sorted_in_steps
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


async def handle(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    deletions = [
        ScramDeletion(item.name, item.mechanism) for item in context.sliced(request.deletions)
    ]
    upsertions = [
        ScramUpsertion(item.name, item.mechanism, item.iterations, item.salt, item.salted_password)
        for item in context.sliced(request.upsertions)
    ]
    results: dict[str, ApiError | None]
    try:
        context.check_cluster(AclOperation.ALTER)
        async with context.broker.admin.operations.decision_lock:
            results = context.broker.controller.alter_scram_credentials(
                deletions, upsertions, context.now_ms, context.step
            )
    except ApiError as error:
        users = {item.user for item in context.sliced(deletions)}
        users.update(item.user for item in context.sliced(upsertions))
        in_order = sorted_in_steps(users, context.step)
        results = dict.fromkeys(context.sliced(in_order), error.with_traceback(None))
    else:
        await context.broker.metadata_log.sync()
    answers = [result_of(*item) for item in context.sliced(iter(results.items()))]
    free(context.step, deletions, upsertions, results)
    return AlterUserScramCredentialsResponse(results=answers)


def result_of(user: str, error: ApiError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user=user, error_code=ErrorCode.NONE)
    return AlterUserScramCredentialsResult(
        user=user, error_code=error.code, error_message=error.message
    )
