// The layout of `--help`: llama.cpp's spellings first, one line per flag where it fits, the default
// last.
#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>

namespace knap {

class HelpFormatter : public CLI::Formatter {
  public:
    HelpFormatter();
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_group(std::string title,
                           bool is_positional,
                           std::vector<const CLI::Option*> options) const override;
    std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace knap
