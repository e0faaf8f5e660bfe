// Reads the members of a JSON object by name and type. Absent and null members mean the default. A
// wrong type or a number out of range throws RequestError with the name of the field.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/json.h"

namespace knap {

struct IntegerLimits {
    std::int64_t min = std::numeric_limits<std::int64_t>::min();
    std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

struct NumberLimits {
    double min = std::numeric_limits<double>::lowest();
    double max = std::numeric_limits<double>::max();
    bool excludes_min = false;
};

// "a string", "an object", ...: what a value is, for messages.
std::string kind_of(const Json& value);
// The value as it is written where that is short, else what it is.
std::string shown(const Json& value);

class Fields {
  public:
    // `object` must be an object and outlive this. `prefix` is what the names in messages begin
    // with, as in "knap.".
    explicit Fields(const Json& object, std::string prefix = {});

    // The member, or null when it is absent or null. Whoever asks for a name makes it a known one.
    const Json* find(std::string_view name);
    std::optional<std::int64_t> integer(std::string_view name, IntegerLimits range = {});
    std::optional<double> number(std::string_view name, NumberLimits range = {});
    std::optional<bool> boolean(std::string_view name);
    std::optional<std::string> string(std::string_view name);
    const Json* object(std::string_view name);
    const Json* array(std::string_view name);

    // The same, stored if the member is there.
    void read(std::string_view name, int& out, IntegerLimits range);
    void read(std::string_view name, float& out, NumberLimits range);
    void read(std::string_view name, bool& out);

    // Members that nobody asked for, in their order.
    std::vector<std::string> unknown() const;
    std::string full_name(std::string_view name) const;

  private:
    [[noreturn]] void wrong_type(std::string_view name, std::string_view wanted, const Json& found);

    const Json& object_;
    std::string prefix_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace knap
