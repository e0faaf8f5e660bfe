// The words of the command line, made plain for CLI11, which knows one letter after a single dash
// and no more.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

namespace knap {

// A flag of llama.cpp that is spelled with one dash and several letters.
struct Alias {
    std::string_view spelling;
    std::string_view long_name;  // without its dashes
};

inline constexpr Alias kAliases[] = {
    {"-ub", "ubatch-size"},   {"-fa", "flash-attn"}, {"-ctk", "cache-type-k"},
    {"-ctv", "cache-type-v"}, {"-sys", "system"},    {"-ngl", "n-gpu-layers"},
};

// Rewrites the words so that each flag is one that `root` or its command knows by that name,
// followed by its value: aliases are spelled out and `--flag=value` is split. The values themselves
// are left alone, whatever they look like. Throws UsageError on an unknown command or flag, a
// missing value, or a word that belongs to no flag.
std::vector<std::string> spell_out(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace knap
