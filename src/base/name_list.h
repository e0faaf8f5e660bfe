// The names of a table's entries in one line, for messages and help: "llama, qwen2, qwen3".
#pragma once

#include <string>

namespace knap {

// Every entry of `table` has a member `name`.
template <typename Table>
std::string list_names(const Table& table) {
    std::string names;
    for (const auto& entry : table) {
        names += names.empty() ? "" : ", ";
        names += entry.name;
    }
    return names;
}

}  // namespace knap
