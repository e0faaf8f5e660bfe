// Ports of this machine, for tests that serve.
#pragma once

#include <string>

namespace knap::test {

// One that nobody listens on.
int free_port();
// Until somebody accepts connections at "127.0.0.1:port"; gives up after ten seconds.
bool wait_for_port(const std::string& endpoint);

}  // namespace knap::test
