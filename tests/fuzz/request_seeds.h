// Bodies of requests to begin with, as the tests send them.
#pragma once

#include <string>
#include <vector>

namespace knap::fuzz {

// JSON texts in the tests of the server: bodies, and members of bodies made into some.
std::vector<std::string> request_bodies();

}  // namespace knap::fuzz
