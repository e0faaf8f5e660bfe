// What constrains the answer of a request: a JSON schema or a grammar.
#pragma once

#include <string>

#include "serve/api/fields.h"

namespace knap {

// At most one is set.
struct RequestConstraint {
    std::string json_schema{};  // JSON text
    std::string grammar{};      // GBNF

    bool is_empty() const { return json_schema.empty() && grammar.empty(); }
};

// Reads `response_format`, `json_schema` and `grammar`. Throws RequestError if two constrain.
RequestConstraint read_constraint(Fields& fields);

}  // namespace knap
