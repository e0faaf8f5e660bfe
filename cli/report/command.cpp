#include "cli/report/command.h"

#include <algorithm>

#include "base/partial_file.h"
#include "cli/exit_code.h"
#include "cli/generate/text_output.h"
#include "cli/plot.h"
#include "cli/report/page.h"
#include "cli/report/report.h"

namespace knap {
namespace {

// Files that share a name are shown by their paths.
void tell_apart(std::vector<ReportFile>& files, const ReportArgs& args) {
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto has_its_name = [&](const std::filesystem::path& path) {
            return path.filename() == args.files[i].filename();
        };
        if (std::ranges::count_if(args.files, has_its_name) > 1) {
            files[i].name = args.files[i].string();
        }
    }
}

void check_usage(const ReportArgs& args) {
    for (const std::filesystem::path& file : args.files) {
        if (file == args.output) {
            fail_usage("--output: expected a file that is not an input, found ",
                       args.output.string());
        }
        if (std::ranges::count(args.files, file) > 1) {
            fail_usage("expected each file once, found ", file.string(), " twice");
        }
    }
}

}  // namespace

CLI::App* add_report(CLI::App& root, ReportArgs& args) {
    CLI::App* app =
        root.add_subcommand("report", "Turns results of `knap bench` into one HTML page");
    app->add_option("files", args.files,
                    "results of `knap bench -o FILE.json`; several are compared")
        ->required()
        ->type_name("FILE.json");
    app->add_option("-o,--output", args.output, "page to write")
        ->capture_default_str()
        ->type_name("FILE.html");
    app->footer(
        "The page is a single file that loads nothing from the network. Drawing its figures needs\n"
        "gnuplot (package gnuplot-nox).");
    return app;
}

int run_report(const ReportArgs& args) {
    check_usage(args);
    check_place(args.output);
    std::vector<ReportFile> files;
    for (const std::filesystem::path& path : args.files) {
        files.push_back(read_report_file(path));
    }
    tell_apart(files, args);
    require_gnuplot();
    const std::string page = report_page(files);
    write_whole_file(args.output, page);
    TextOutput().write(
        concat(args.output.string(), ": ", format_bytes(std::int64_t(page.size())), "\n"));
    return kExitDone;
}

}  // namespace knap
