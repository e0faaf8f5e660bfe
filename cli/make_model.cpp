#include "cli/make_model.h"

#include <charconv>
#include <iostream>

#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/generate/text_output.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/report/report.h"
#include "tools/make_model/shapes.h"

namespace knap {

namespace {

void check_usage(const RandomModelOptions& options) {
    try {
        check_random_model(options);
    } catch (const Error& error) {
        throw UsageError(error.what());
    }
}

std::uint64_t parse_seed(const std::string& text) {
    std::uint64_t seed = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seed);
    if (error != std::errc() || rest != end) {
        fail_usage("--seed: expected a whole number of at least 0, found '", text, "'");
    }
    return seed;
}

// Thrown out of write_random_model(), which then leaves no file behind.
struct Interrupted {};

}  // namespace

CLI::App* add_make_model(CLI::App& root, MakeModelArgs& args) {
    CLI::App* app = root.add_subcommand(
        "make-model", "Writes a model with random weights in the shape of a known one");
    RandomModelOptions& options = args.options;
    app->add_option("--shape", options.shape, "shape of the model")->required()->type_name("NAME");
    app->add_option("--type", options.type, "type of the matrices")
        ->capture_default_str()
        ->type_name("TYPE");
    app->add_option("--head-type", options.head_type,
                    "type of the embedding and the head (default: that of --type)")
        ->type_name("TYPE");
    FlagGroup group(*app, "Options");
    group.integer("--layers", options.n_layers, {.min = 0}, "number of layers; 0: the shape's");
    group.custom({"-s,--seed", "N", "seed for the weights", concat(options.seed)},
                 [&options](const std::string& text) { options.seed = parse_seed(text); });
    app->add_option("-o,--output", args.output, "file to write")->required()->type_name("FILE");
    app->footer(concat("Shapes: ", shape_names(),
                       "; tiny is tiny-llama.\nTypes: ", random_model_types(), "."));
    return app;
}

int run_make_model(const MakeModelArgs& args) {
    check_usage(args.options);
    const InterruptScope interrupt;
    ProgressBar bar("write");
    RandomModelOptions options = args.options;
    options.on_progress = [&](double fraction) {
        if (interrupt.signal() != 0) {
            throw Interrupted{};
        }
        bar.update(fraction);
    };
    try {
        write_random_model(options, args.output);
    } catch (const Interrupted&) {
        bar.finish();
        std::cerr << "knap: interrupted, no model is written\n";
        return kExitInterrupted;
    }
    bar.finish();
    const auto n_bytes = std::int64_t(std::filesystem::file_size(args.output));
    TextOutput().write(concat(args.output.string(), ": ", options.shape, ", ", options.type, ", ",
                              format_bytes(n_bytes), "\n"));
    return kExitDone;
}

}  // namespace knap
