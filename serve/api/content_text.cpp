#include "serve/api/content_text.h"

#include "base/quoted.h"
#include "serve/api/error.h"
#include "serve/api/fields.h"

namespace knap {
namespace {

std::string part_text(const Json& part, const std::string& field) {
    if (!part.is_object()) {
        bad_field(field, "expected an object with a type, found ", kind_of(part));
    }
    Fields fields(part, field + ".");
    const std::string type = fields.string("type").value_or("");
    if (type != "text") {
        bad_field(field + ".type", "expected text, the only kind of content here, found ",
                  in_quotes(type));
    }
    const auto text = fields.string("text");
    if (!text) {
        bad_field(field + ".text", "expected a string, found none");
    }
    return *text;
}

}  // namespace

std::string content_text(const Json& content, std::string_view field) {
    if (content.is_string()) {
        return content.get<std::string>();
    }
    if (!content.is_array()) {
        bad_field(field, "expected a string or an array of parts, found ", kind_of(content));
    }
    std::string text;
    for (std::size_t i = 0; i < content.size(); ++i) {
        text += i == 0 ? "" : "\n";
        text += part_text(content[i], concat(field, "[", i, "]"));
    }
    return text;
}

}  // namespace knap
