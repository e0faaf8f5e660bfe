// A cell of a benchmark table: prompts of one kind, cut to one length. Written
// DATA.jsonl[:TASK][@TOKENS].
#pragma once

#include <filesystem>
#include <string>

namespace knap::bench {

struct Cell {
    std::string name;
    std::string source;
    std::size_t max_tokens = 0;  // 0: what fits
};

inline Cell parse_cell(const std::string& text) {
    const std::size_t at = text.rfind('@');
    Cell cell{.source = text.substr(0, at)};
    if (at != std::string::npos) {
        cell.max_tokens = std::stoul(text.substr(at + 1));
    }
    cell.name = std::filesystem::path(text).filename().string();
    if (const std::size_t suffix = cell.name.find(".jsonl"); suffix != std::string::npos) {
        cell.name.erase(suffix, 6);
    }
    return cell;
}

}  // namespace knap::bench
