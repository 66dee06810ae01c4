"""What tests with kafka-python in their own process need."""

import pytest

# A client that is closed while it connects leaves the socket of that connection to the collector.
may_leave_a_socket = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
