#include "serve/api/constraint_fields.h"

#include "base/quoted.h"
#include "serve/api/error.h"

namespace knap {
namespace {

std::string schema_text(const Json& schema, std::string_view field) {
    // `true` allows any value in JSON schema.
    if (!schema.is_object() && !schema.is_boolean()) {
        bad_field(field, "expected a JSON schema, found ", kind_of(schema));
    }
    return to_text(schema);
}

// {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}
std::string schema_of_format(Fields& format) {
    const Json* wrapper = format.object("json_schema");
    if (wrapper == nullptr) {
        bad_field("response_format.json_schema", "expected an object, found none");
    }
    Fields fields(*wrapper, "response_format.json_schema.");
    fields.string("name");
    fields.boolean("strict");
    const Json* schema = fields.find("schema");
    if (schema == nullptr) {
        bad_field("response_format.json_schema.schema", "expected a JSON schema, found none");
    }
    return schema_text(*schema, "response_format.json_schema.schema");
}

// The schema that `response_format` asks for; empty: none.
std::string read_format(Fields& fields) {
    const Json* value = fields.object("response_format");
    if (value == nullptr) {
        return {};
    }
    Fields format(*value, "response_format.");
    const std::string type = format.string("type").value_or("");
    if (type == "json_schema") {
        return schema_of_format(format);
    }
    if (type == "json_object") {
        // llama.cpp's server takes a schema here.
        const Json* schema = format.find("schema");
        return schema != nullptr ? schema_text(*schema, "response_format.schema")
                                 : R"({"type":"object"})";
    }
    if (type != "text") {
        bad_field("response_format.type", "expected text, json_object or json_schema, found ",
                  in_quotes(type));
    }
    return {};
}

}  // namespace

RequestConstraint read_constraint(Fields& fields) {
    RequestConstraint constraint{.json_schema = read_format(fields),
                                 .grammar = fields.string("grammar").value_or("")};
    const Json* schema = fields.find("json_schema");
    const int n_set = (constraint.json_schema.empty() ? 0 : 1) + (schema == nullptr ? 0 : 1) +
                      (constraint.grammar.empty() ? 0 : 1);
    if (n_set > 1) {
        bad_field(schema != nullptr ? "json_schema" : "grammar",
                  "expected one of `response_format`, `json_schema` and `grammar`, found ", n_set);
    }
    if (schema != nullptr) {
        constraint.json_schema = schema_text(*schema, "json_schema");
    }
    return constraint;
}

}  // namespace knap
