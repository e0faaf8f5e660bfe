#include "text/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <set>

#include "llama-common/json-schema-to-grammar.h"

#include "knap/chat.h"

#include "base/error.h"
#include "base/quoted.h"
#include "base/recent_values.h"
#include "nlohmann/json.hpp"
#include "text/grammar/grammar_parser.h"
#include "text/grammar/schema_pattern.h"

namespace knap {

namespace {

using Json = nlohmann::ordered_json;  // a grammar keeps the order of properties

// Keywords that restrict a value and that the converter ignores.
constexpr std::array<std::string_view, 21> kUnenforced = {"not",
                                                          "if",
                                                          "then",
                                                          "else",
                                                          "multipleOf",
                                                          "uniqueItems",
                                                          "contains",
                                                          "minContains",
                                                          "maxContains",
                                                          "patternProperties",
                                                          "minProperties",
                                                          "maxProperties",
                                                          "propertyNames",
                                                          "dependentRequired",
                                                          "dependencies",
                                                          "dependentSchemas",
                                                          "$dynamicRef",
                                                          "unevaluatedItems",
                                                          "$recursiveRef",
                                                          "unevaluatedProperties",
                                                          "additionalItems"};

class SchemaCheck {
  public:
    SchemaCheck(std::string_view where, SchemaUse use) : where_(where), use_(use) {}

    void check(Json& schema, const std::string& path, int depth);
    // What references lead to, where check() has not been.
    void check_targets(Json& root);

  private:
    template <typename... Parts>
    [[noreturn]] void refuse(const std::string& path,
                             std::string_view keyword,
                             const Parts&... parts) const {
        fail(where_, ": ", path, ": `", keyword, "`: ", parts...);
    }
    // True: the keyword was removed.
    template <typename... Parts>
    bool leave_out(Json& schema,
                   const std::string& path,
                   const std::string& keyword,
                   const Parts&... parts) const {
        if (use_ == SchemaUse::answer) {
            refuse(path, keyword, parts...);
        }
        schema.erase(keyword);
        return true;
    }
    void check_keywords(Json& schema, const std::string& path);
    void check_reference(const Json& ref, const std::string& path);
    void check_count(Json& schema, const std::string& path, const std::string& keyword) const;
    void check_order(Json& schema,
                     const std::string& path,
                     const char* least,
                     const std::string& most) const;
    void check_bound(Json& schema, const std::string& path, const std::string& keyword) const;
    void check_pattern(Json& schema, const std::string& path) const;
    void check_children(Json& schema, const std::string& path, int depth);

    std::string_view where_;
    SchemaUse use_;
    std::set<const Json*> checked_;
    std::map<std::string, std::string> references_;  // by the names that the converter gives them
};

void SchemaCheck::check(Json& schema, const std::string& path, int depth) {
    if (schema.is_boolean() && (use_ == SchemaUse::tool || schema.get<bool>())) {
        schema = Json::object();  // `true` allows everything
    }
    if (!schema.is_object()) {
        fail(where_, ": ", path, ": expected an object, found ", schema.type_name());
    }
    if (depth > kMaxSchemaDepth) {
        fail(where_, ": ", path, ": expected at most ", kMaxSchemaDepth, " levels, found more");
    }
    checked_.insert(&schema);
    check_keywords(schema, path);
    for (const char* keyword : {"minLength", "maxLength", "minItems", "maxItems"}) {
        check_count(schema, path, keyword);
    }
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
        check_bound(schema, path, keyword);
    }
    check_order(schema, path, "minLength", "maxLength");
    check_order(schema, path, "minItems", "maxItems");
    check_order(schema, path, "minimum", "maximum");
    check_pattern(schema, path);
    check_children(schema, path, depth);
}

void SchemaCheck::check_targets(Json& root) {
    std::set<std::string> done;
    for (std::size_t n_before = 0; n_before < references_.size();) {
        n_before = references_.size();
        for (const auto& [name, ref] : std::map(references_)) {
            // Where a reference leads to is checked as a part of the tree, which is not constant.
            auto* target = const_cast<Json*>(schema_at(root, ref));
            if (done.insert(ref).second && target != nullptr && !checked_.contains(target)) {
                check(*target, ref, 1);
            }
        }
    }
}

void SchemaCheck::check_reference(const Json& ref, const std::string& path) {
    if (!ref.is_string() || !ref.get_ref<const std::string&>().starts_with("#/")) {
        refuse(path, "$ref", "expected a place in the same schema (#/...), found ",
               in_quotes(ref.is_string() ? ref.get<std::string>() : ref.dump()));
    }
    const std::string& text = ref.get_ref<const std::string&>();
    std::string name;  // the converter takes references of the same name for the same
    for (const char c : text) {
        const bool is_kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
        if (is_kept || !name.ends_with('/')) {
            name += is_kept ? c : '/';
        }
    }
    std::replace(name.begin(), name.end(), '/', '-');
    if (const auto [other, is_new] = references_.emplace(name, text);
        !is_new && other->second != text) {
        refuse(path, "$ref", "expected names that differ in letters and digits, found ",
               in_quotes(text), " and ", in_quotes(other->second));
    }
}

void SchemaCheck::check_keywords(Json& schema, const std::string& path) {
    if (const auto ref = schema.find("$ref"); ref != schema.end()) {
        check_reference(*ref, path);
    }
    for (const std::string_view keyword : kUnenforced) {
        const auto found = schema.find(keyword);
        if (found != schema.end() && *found != Json(false)) {
            leave_out(schema, path, std::string(keyword), "is not supported");
        }
    }
    for (const char* keyword : {"minLength", "maxLength"}) {
        if (schema.contains("pattern") && schema.contains(keyword)) {
            leave_out(schema, path, keyword, "is not supported beside `pattern`");
        }
    }
    const bool is_number = schema.contains("type") && schema["type"] == "number";
    for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
        if (is_number && schema.contains(keyword)) {
            leave_out(schema, path, keyword, "is supported for integers only");
        }
    }
}

void SchemaCheck::check_count(Json& schema,
                              const std::string& path,
                              const std::string& keyword) const {
    const auto found = schema.find(keyword);
    if (found == schema.end()) {
        return;
    }
    if (!found->is_number_unsigned() && !found->is_number_float()) {
        refuse(path, keyword, "expected a count, found ", found->dump());
    }
    const double count = found->get<double>();
    if (count < 0 || count != std::floor(count)) {
        refuse(path, keyword, "expected a count, found ", found->dump());
    }
    if (count <= kMaxCount) {
        *found = static_cast<std::uint64_t>(count);  // 3.0 is a count too
    } else if (keyword.starts_with("max")) {
        schema.erase(keyword);  // no answer can exceed it
    } else {
        leave_out(schema, path, keyword, "expected at most ", kMaxCount, ", found ", found->dump());
    }
}

// The converter makes a grammar that nothing fits.
void SchemaCheck::check_order(Json& schema,
                              const std::string& path,
                              const char* least,
                              const std::string& most) const {
    const auto low = schema.find(least);
    const auto high = schema.find(most);
    if (low != schema.end() && high != schema.end() && *high < *low) {
        leave_out(schema, path, most, "expected at least `", least, "`, which is ", low->dump(),
                  ", found ", high->dump());
    }
}

void SchemaCheck::check_bound(Json& schema,
                              const std::string& path,
                              const std::string& keyword) const {
    constexpr double kLargest = 9007199254740992.0;  // 2^53: every integer up to it is exact
    const auto found = schema.find(keyword);
    if (found == schema.end()) {
        return;
    }
    if (!found->is_number()) {
        refuse(path, keyword, "expected a number, found ", found->dump());
    }
    if (!(std::abs(found->get<double>()) <= kLargest)) {
        leave_out(schema, path, keyword, "expected at most 2^53, found ", found->dump());
    }
}

void SchemaCheck::check_pattern(Json& schema, const std::string& path) const {
    const auto found = schema.find("pattern");
    if (found == schema.end()) {
        return;
    }
    if (!found->is_string()) {
        refuse(path, "pattern", "expected a string, found ", found->dump());
    }
    const std::string pattern = *found;
    if (const auto convertible = convertible_pattern(pattern)) {
        *found = *convertible;
    } else {
        leave_out(schema, path, "pattern",
                  "expected ^...$ without assertions, references, quotes and backslashes, found ",
                  in_quotes(pattern));
    }
}

void SchemaCheck::check_children(Json& schema, const std::string& path, int depth) {
    for (const char* keyword : {"properties", "$defs", "definitions"}) {
        const auto found = schema.find(keyword);
        if (found == schema.end()) {
            continue;
        }
        if (!found->is_object()) {
            refuse(path, keyword, "expected an object, found ", found->type_name());
        }
        for (auto& [name, child] : found->items()) {
            check(child, concat(path, "/", keyword, "/", name), depth + 1);
        }
    }
    for (const char* keyword : {"anyOf", "oneOf", "allOf", "items", "prefixItems"}) {
        const auto found = schema.find(keyword);
        if (found == schema.end()) {
            continue;
        }
        if (found->is_array()) {
            for (std::size_t i = 0; i < found->size(); ++i) {
                check((*found)[i], concat(path, "/", keyword, "/", i), depth + 1);
            }
        } else {
            check(*found, concat(path, "/", keyword), depth + 1);
        }
    }
    if (const auto found = schema.find("additionalProperties");
        found != schema.end() && !found->is_boolean()) {
        check(*found, path + "/additionalProperties", depth + 1);
    }
}

Json parse_schema(std::string_view text, std::string_view where) {
    if (text.size() > kMaxSchemaBytes) {
        fail(where, ": expected at most ", kMaxSchemaBytes, " bytes, found ", text.size());
    }
    // Before parsing: a tree of thousands of levels would overflow the stack when it is destroyed.
    constexpr int kMaxNesting = 4 * kMaxSchemaDepth;
    const auto is_shallow = [&](int depth, Json::parse_event_t, Json&) {
        if (depth > kMaxNesting) {
            fail(where, ": expected at most ", kMaxSchemaDepth, " levels, found more");
        }
        return true;
    };
    try {
        return Json::parse(text, is_shallow);
    } catch (const Json::exception& error) {
        fail(where, ": expected JSON, found an error at byte ",
             dynamic_cast<const Json::parse_error*>(&error) != nullptr
                 ? static_cast<const Json::parse_error&>(error).byte
                 : 0);
    }
}

}  // namespace

std::string checked_schema(std::string_view schema,
                           std::string_view where,
                           SchemaUse use,
                           SchemaBudget& budget) {
    Json tree = parse_schema(schema, where);
    SchemaCheck check(where, use);
    check.check(tree, "#", 1);
    check.check_targets(tree);
    spend_on_schema(tree, where, budget);
    try {
        const std::string text = tree.dump();
        schema_grammar(text);
        return text;
    } catch (const std::exception& error) {
        constexpr std::string_view kOption = "`.grammar`: ";
        std::string reason = error.what();
        std::replace(reason.begin(), reason.end(), '\n', ' ');
        if (reason.starts_with(kOption)) {
            reason.replace(0, kOption.size(), "its grammar: ");
        }
        fail(where, ": ", reason);
    }
}

std::string schema_grammar(const std::string& checked) {
    // Clients send the same few schemas again and again.
    static RecentValues<std::string, std::string> recent(kMaxKeptSchemas);
    return recent.get_or_make(checked, [](const std::string& schema) {
        std::string grammar = json_schema_to_grammar(common_json::parse(schema), true);
        parse_grammar(grammar);  // throws if it takes too long
        return grammar;
    });
}

std::string json_schema_to_gbnf(std::string_view schema) {
    SchemaBudget budget;
    return schema_grammar(checked_schema(schema, "`.json_schema`", SchemaUse::answer, budget));
}

}  // namespace knap
