// Ports of this machine, for tests that serve.
#pragma once

namespace knap::test {

// One that nobody listens on.
int free_port();

}  // namespace knap::test
