// Local ports, for tests of servers.
#pragma once

namespace knap::test {

// A port that no process listens on.
int free_port();

}  // namespace knap::test
