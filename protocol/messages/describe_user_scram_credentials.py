"""DescribeUserScramCredentials (key 50): users' SCRAM mechanisms and iterations (KIP-554)."""

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import Int8, Int16, Int32, Message, String, Struct


class DescribeUserScramCredentialsUser(Struct):
    name: String


class DescribeUserScramCredentialsRequest(
    Message, key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    users: list[DescribeUserScramCredentialsUser] | None


class DescribeUserScramCredentialsCredential(Struct):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16 = 0
    error_message: String | None = None
    credential_infos: list[DescribeUserScramCredentialsCredential]


class DescribeUserScramCredentialsResponse(
    Message, key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: list[DescribeUserScramCredentialsResult] = []
