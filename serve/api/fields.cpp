#include "serve/api/fields.h"

#include "serve/api/error.h"

namespace knap {

std::string kind_of(const Json& value) {
    switch (value.type()) {
        case Json::value_t::object:
            return "an object";
        case Json::value_t::array:
            return "an array";
        case Json::value_t::string:
            return "a string";
        case Json::value_t::boolean:
            return "a boolean";
        case Json::value_t::null:
            return "null";
        default:
            return "a number";
    }
}

std::string shown(const Json& value) {
    const bool is_long = value.is_structured() ||
                         (value.is_string() && value.get_ref<const std::string&>().size() > 40);
    return is_long ? kind_of(value) : to_text(value);
}

Fields::Fields(const Json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const Json* Fields::find(std::string_view name) {
    known_.emplace(name);
    const auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, IntegerLimits range) {
    const Json* value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number_integer()) {
        wrong_type(name, "a whole number", *value);
    }
    const bool is_huge = value->is_number_unsigned() &&
                         value->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
    if (is_huge || value->get<std::int64_t>() < range.min ||
        value->get<std::int64_t>() > range.max) {
        bad_field(full_name(name), "expected ", range.min, "..", range.max, ", found ",
                  shown(*value));
    }
    return value->get<std::int64_t>();
}

std::optional<double> Fields::number(std::string_view name, NumberLimits range) {
    const Json* value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number()) {
        wrong_type(name, "a number", *value);
    }
    const double number = value->get<double>();
    const bool is_low = range.excludes_min ? !(number > range.min) : !(number >= range.min);
    if (is_low || !(number <= range.max)) {
        const std::string low = concat(range.excludes_min ? "more than " : "", range.min);
        bad_field(full_name(name), "expected ", low,
                  range.max < 1e30 ? concat("..", range.max) : std::string(), ", found ",
                  shown(*value));
    }
    return number;
}

std::optional<bool> Fields::boolean(std::string_view name) {
    const Json* value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        wrong_type(name, "true or false", *value);
    }
    return value->get<bool>();
}

std::optional<std::string> Fields::string(std::string_view name) {
    const Json* value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_string()) {
        wrong_type(name, "a string", *value);
    }
    return value->get<std::string>();
}

const Json* Fields::object(std::string_view name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_object()) {
        wrong_type(name, "an object", *value);
    }
    return value;
}

const Json* Fields::array(std::string_view name) {
    const Json* value = find(name);
    if (value != nullptr && !value->is_array()) {
        wrong_type(name, "an array", *value);
    }
    return value;
}

void Fields::read(std::string_view name, int& out, IntegerLimits range) {
    if (const auto value = integer(name, range)) {
        out = static_cast<int>(*value);
    }
}

void Fields::read(std::string_view name, float& out, NumberLimits range) {
    if (const auto value = number(name, range)) {
        out = static_cast<float>(*value);
    }
}

void Fields::read(std::string_view name, bool& out) {
    out = boolean(name).value_or(out);
}

std::vector<std::string> Fields::unknown() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : object_.items()) {
        if (!known_.contains(name)) {
            names.push_back(name);
        }
    }
    return names;
}

std::string Fields::full_name(std::string_view name) const {
    return concat(prefix_, name);
}

void Fields::wrong_type(std::string_view name, std::string_view wanted, const Json& found) {
    bad_field(full_name(name), "expected ", wanted, ", found ", shown(found));
}

}  // namespace knap
