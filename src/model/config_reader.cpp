#include "model/config_reader.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace knap {

int ConfigReader::checked_count(std::string_view field, std::uint64_t value, int limit) const {
    if (value < 1 || std::cmp_greater(value, limit)) {
        fail_field(field, concat("1 to ", limit), value);
    }
    return static_cast<int>(value);
}

int ConfigReader::count(std::string_view field, int limit) const {
    const std::optional<std::uint64_t> value = file_.integer(key(field));
    if (!value) {
        fail_field(field, concat("1 to ", limit), "no such key");
    }
    return checked_count(field, *value, limit);
}

int ConfigReader::count_or(std::string_view field, int fallback, int limit) const {
    const std::optional<std::uint64_t> value = file_.integer(key(field));
    return value ? checked_count(field, *value, limit) : fallback;
}

std::optional<int> ConfigReader::uniform_count(std::string_view field,
                                               int n_layers,
                                               int limit) const {
    if (!file_.is_array(key(field))) {
        const std::optional<std::uint64_t> value = file_.integer(key(field));
        return value ? std::optional(checked_count(field, *value, limit)) : std::nullopt;
    }
    const std::vector<std::uint64_t> values = *file_.integers(key(field));
    if (std::cmp_not_equal(values.size(), n_layers)) {
        fail_field(field, concat("a value for each of ", n_layers, " layers"), values.size());
    }
    const auto other = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>());
    if (other != values.end()) {
        fail_unsupported(field, "the same value in every layer",
                         concat(other[0], " and ", other[1]), "numbers that differ by layer",
                         concat(architecture(), " with one number"));
    }
    return checked_count(field, values.front(), limit);
}

std::optional<float> ConfigReader::number(std::string_view field) const {
    const std::optional<double> value = file_.number(key(field));
    if (!value) {
        return std::nullopt;
    }
    const auto narrowed = static_cast<float>(*value);
    if (!std::isfinite(narrowed)) {
        fail_field(field, "a finite number", *value);
    }
    return narrowed;
}

}  // namespace knap
