// What a client gets instead of an answer: a status and OpenAI's error object.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "knap/types.h"

#include "base/text.h"
#include "serve/api/json.h"

namespace knap {

struct ApiError {
    int status = 400;
    std::string message{};
    std::string type = "invalid_request_error";
    std::optional<std::string> param{};  // the field at fault
    std::optional<std::string> code{};
    Json details = Json::object();  // further members of the error object
    std::vector<std::pair<std::string, std::string>> headers{};
};

// {"error": {"message", "type", "param", "code", ...}}
Json to_json(const ApiError& error);

// The error of a status that needs no further words, such as 404 or 405.
ApiError plain_error(int status, std::string message);

// What the engine refuses: its message names fields as they are initialised, "`.top_k`: ...".
ApiError engine_error(const Error& error);

class RequestError : public std::exception {
  public:
    explicit RequestError(ApiError error) : error_(std::move(error)) {}
    const ApiError& error() const { return error_; }
    const char* what() const noexcept override { return error_.message.c_str(); }

  private:
    ApiError error_;
};

// Refuses a request because of a field: bad_field("top_p", "expected 0..1, found ", value). The
// message begins with the name of the field.
template <typename... Parts>
[[noreturn]] void bad_field(std::string_view field, const Parts&... parts) {
    throw RequestError(
        {.message = concat("`", field, "`: ", parts...), .param = std::string(field)});
}

}  // namespace knap
