#include "text/grammar/schema_work.h"

#include <cctype>
#include <charconv>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace knap {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxVisitDepth = 256;     // of schemas inside each other, by way of references too
constexpr std::size_t kShortName = 15;  // bytes that a string has room for

// Costs in microseconds.
constexpr double kPerRule = 2;
constexpr double kPerByte = 0.05;        // of names and values
constexpr double kPerSameName = 0.3;     // rules whose names differ in their numbers only
constexpr double kPerPair = 0.7;         // of optional properties: the rest of each is a rule
constexpr double kPerPairByte = 0.04;    // of the name of that rule
constexpr double kPerShortCopy = 0.003;  // of the name of a property, for each pair
constexpr double kPerLongCopy = 0.03;

const Json* find(const Json& schema, const char* keyword) {
    const auto found = schema.find(keyword);
    return found == schema.end() ? nullptr : &*found;
}

// Goes through a schema as the converter does.
class SchemaWork {
  public:
    SchemaWork(const Json& root, std::string_view where, SchemaBudget& budget)
        : root_(root), where_(where), budget_(budget) {}

    void visit(const Json& schema, const std::string& name) {
        const Level level(*this);
        add_rule(name);
        if (!schema.is_object()) {
            return;
        }
        if (const Json* ref = find(schema, "$ref")) {
            visit_target(*ref);
            return;
        }
        const Json* type = find(schema, "type");
        // A copy of the schema for each type.
        const std::size_t n_times = type != nullptr && type->is_array() ? type->size() : 1;
        if (n_times > 1) {
            spend(static_cast<double>(n_times * schema.dump().size()) * kPerByte);
        }
        for (std::size_t i = 0; i < n_times; ++i) {
            visit_typed(schema, name);
        }
    }

  private:
    using Property = std::pair<std::string, const Json*>;

    struct Level {
        explicit Level(SchemaWork& owner) : work(owner) { work.descend(); }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        ~Level() { --work.depth_; }
        SchemaWork& work;
    };

    void descend() {
        if (++depth_ > kMaxVisitDepth) {
            fail(where_, ": expected schemas at most ", kMaxVisitDepth,
                 " deep by way of references, found more");
        }
    }

    void spend(double us) {
        budget_.us_left -= us;
        if (budget_.us_left < 0) {
            fail(where_,
                 ": expected a schema that compiles within a second, found one that is too "
                 "large: fewer optional properties, `allOf` and lists of types take less");
        }
    }

    // Rules have names of letters and digits, and a number where two would have the same.
    void add_rule(const std::string& name) {
        std::string plain;
        for (const char c : name) {
            const bool is_kept = std::isalnum(static_cast<unsigned char>(c)) != 0;
            if (is_kept || !plain.ends_with('-')) {
                plain += is_kept ? c : '-';
            }
        }
        const double n_same = n_rules_by_name_[plain]++;
        spend(kPerRule + static_cast<double>(name.size()) * kPerByte + n_same * kPerSameName);
        ++n_rules_;
    }

    // References are converted once, all but those in `allOf`.
    void visit_target(const Json& ref) {
        const Json* target = ref.is_string() ? schema_at(root_, ref.get<std::string>()) : nullptr;
        if (target != nullptr && seen_.insert(ref.get<std::string>()).second) {
            visit(*target, ref.get<std::string>());
        }
    }

    // Whatever the type, so that the sum is never too small.
    void visit_typed(const Json& schema, const std::string& name) {
        for (const char* keyword : {"oneOf", "anyOf", "items", "prefixItems"}) {
            if (const Json* children = find(schema, keyword)) {
                visit_children(*children, name);
            }
        }
        for (const char* keyword : {"const", "enum"}) {
            if (const Json* values = find(schema, keyword)) {
                spend(static_cast<double>(values->dump().size()) * kPerByte);
            }
        }
        if (const Json* pattern = find(schema, "pattern"); pattern != nullptr) {
            // All rules are copied, to go back to them.
            spend(n_rules_ * kPerByte + static_cast<double>(pattern->dump().size()) * kPerByte);
        }
        if (const Json* parts = find(schema, "allOf"); parts != nullptr && parts->is_array()) {
            std::vector<Property> properties;
            for (const Json& part : *parts) {
                collect(part, properties);
            }
            visit_properties(properties, {}, name);
        }
        visit_object(schema, name);
    }

    void visit_children(const Json& children, const std::string& name) {
        if (!children.is_array()) {
            visit(children, name + "-item");
            return;
        }
        for (std::size_t i = 0; i < children.size(); ++i) {
            visit(children[i], concat(name, "-", i));
        }
    }

    void visit_object(const Json& schema, const std::string& name) {
        std::set<std::string> required;
        if (const Json* names = find(schema, "required"); names != nullptr && names->is_array()) {
            for (const Json& one : *names) {
                required.insert(one.is_string() ? one.get<std::string>() : "");
            }
        }
        std::vector<Property> properties;
        append_properties(schema, properties);
        if (const Json* other = find(schema, "additionalProperties")) {
            properties.emplace_back("*", other);
        }
        visit_properties(properties, required, name);
    }

    static void append_properties(const Json& schema, std::vector<Property>& properties) {
        if (const Json* members = find(schema, "properties");
            members != nullptr && members->is_object()) {
            for (const auto& [name, member] : members->items()) {
                properties.emplace_back(name, &member);
            }
        }
    }

    // The properties of a part of `allOf`.
    void collect(const Json& part, std::vector<Property>& properties) {
        const Level level(*this);
        spend(kPerRule);
        if (!part.is_object()) {
            return;
        }
        if (const Json* ref = find(part, "$ref"); ref != nullptr && ref->is_string()) {
            if (const Json* target = schema_at(root_, ref->get<std::string>())) {
                collect(*target, properties);
            }
            return;
        }
        append_properties(part, properties);
        for (const char* keyword : {"oneOf", "anyOf"}) {
            if (const Json* parts = find(part, keyword); parts != nullptr && parts->is_array()) {
                for (const Json& one : *parts) {
                    collect(one, properties);
                }
            }
        }
    }

    void visit_properties(const std::vector<Property>& properties,
                          const std::set<std::string>& required,
                          const std::string& name) {
        double n_optional = 0;
        double n_bytes = 0;
        double copies_us = 0;  // of all names of optional properties
        for (const auto& [property, schema] : properties) {
            visit(*schema, concat(name, "-", property));
            if (!required.contains(property)) {
                n_optional += 1;
                n_bytes += static_cast<double>(name.size() + property.size());
                copies_us += property.size() > kShortName ? kPerLongCopy : kPerShortCopy;
            }
        }
        // As often as there are pairs; on average the names are half of all.
        spend(n_optional * (n_optional * (kPerPair + copies_us) + n_bytes * kPerPairByte) / 2);
    }

    const Json& root_;
    std::string_view where_;
    SchemaBudget& budget_;
    int depth_ = 0;
    double n_rules_ = 0;
    std::set<std::string> seen_;  // references
    std::unordered_map<std::string, double> n_rules_by_name_;
};

}  // namespace

// By names as they stand, without escapes, as the converter does.
const Json* schema_at(const Json& root, std::string_view ref) {
    const Json* place = &root;
    const std::vector<std::string_view> names = split(ref, '/');
    for (std::size_t i = 1; i < names.size() && place != nullptr; ++i) {
        if (place->is_object()) {
            const auto found = place->find(std::string(names[i]));
            place = found == place->end() ? nullptr : &*found;
            continue;
        }
        std::size_t index = 0;
        const char* end = names[i].data() + names[i].size();
        const bool is_index =
            std::from_chars(names[i].data(), end, index).ptr == end && !names[i].empty();
        place = place->is_array() && is_index && index < place->size() ? &(*place)[index] : nullptr;
    }
    return place;
}

void spend_on_schema(const Json& schema, std::string_view where, SchemaBudget& budget) {
    SchemaWork(schema, where, budget).visit(schema, "");
}

}  // namespace knap
