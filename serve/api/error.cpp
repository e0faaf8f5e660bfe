#include "serve/api/error.h"

namespace knap {
namespace {

std::string type_of(int status) {
    switch (status) {
        case 401:
        case 403:
            return "authentication_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        case 500:
            return "server_error";
        case 501:
            return "not_supported_error";
        case 503:
            return "unavailable_error";
        default:
            return "invalid_request_error";
    }
}

Json or_null(const std::optional<std::string>& text) {
    return text ? Json(*text) : Json(nullptr);
}

}  // namespace

Json to_json(const ApiError& error) {
    Json object{{"message", error.message},
                {"type", error.type},
                {"param", or_null(error.param)},
                {"code", or_null(error.code)}};
    object.update(error.details);
    return {{"error", std::move(object)}};
}

ApiError plain_error(int status, std::string message) {
    return {.status = status, .message = std::move(message), .type = type_of(status)};
}

ApiError engine_error(const Error& error) {
    ApiError refusal{.message = error.what()};
    const std::string& message = refusal.message;
    if (message.starts_with("`.")) {
        refusal.param = message.substr(2, message.find('`', 2) - 2);
        refusal.message = concat("`", message.substr(2));
    }
    return refusal;
}

}  // namespace knap
