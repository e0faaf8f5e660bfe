// The identity of a request in answers and logs.
#pragma once

#include <string>
#include <string_view>

namespace knap {

// The client's, if it has 1 to 128 printable characters; otherwise one that nobody else has.
std::string request_id(std::string_view from_client);

}  // namespace knap
