"""AlterUserScramCredentials (key 51): set and delete users' SCRAM credentials."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Bytes, Int8, Int16, Int32, Message, String, Struct


class AlterUserScramCredentialsDeletion(Struct):
    name: String
    mechanism: Int8


class AlterUserScramCredentialsUpsertion(Struct):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


class AlterUserScramCredentialsRequest(
    Message, key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    deletions: list[AlterUserScramCredentialsDeletion]
    upsertions: list[AlterUserScramCredentialsUpsertion]


class AlterUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16 = 0
    error_message: String | None = None


class AlterUserScramCredentialsResponse(
    Message, key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult]
