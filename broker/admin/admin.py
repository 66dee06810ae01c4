"""Groups the objects of a broker that change topics, quotas and configurations."""

from dataclasses import dataclass

from .applied_config import AppliedConfig
from .config_admin import ConfigAdmin
from .operations import Operations
from .quota_admin import QuotaAdmin
from .topic_admin import TopicAdmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """`operations` keeps the changes apart; `applied_config` puts changed settings in force."""

    operations: Operations
    topics: TopicAdmin
    quotas: QuotaAdmin
    configs: ConfigAdmin
    applied_config: AppliedConfig
