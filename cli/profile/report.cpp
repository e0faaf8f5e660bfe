#include "cli/profile/report.h"

#include <iomanip>
#include <sstream>

#include "base/text.h"
#include "cli/profile/axes.h"
#include "cli/report/report.h"
#include "forward/plan_text.h"
#include "runtime/files/profile_file.h"

namespace knap {
namespace {

using nlohmann::ordered_json;

constexpr int kLabelWidth = 30;
constexpr int kCellWidth = 10;
constexpr int kWideCellWidth = 17;

void write_label(std::ostream& out, const std::string& label) {
    out << "  " << std::left << std::setw(kLabelWidth) << label << std::right;
}

void write_part(std::ostream& out, const std::string& label, double ms) {
    write_label(out, label);
    out << std::setw(kCellWidth) << format_fixed(ms, 4) << '\n';
}

void write_attention(std::ostream& out, const ProfileReport& report, const LayerClass& of) {
    const auto contexts = measured_contexts(report.profile);
    write_label(out, concat("attention", class_suffix(report.profile, of), ", at"));
    for (const int n_context : contexts) {
        out << std::setw(kCellWidth) << n_context;
    }
    out << '\n';
    for (const Level& level : measured_levels(report.profile)) {
        write_label(out, "  " + level_name(level));
        for (const int n_context : contexts) {
            out << std::setw(kCellWidth)
                << format_fixed(report.costs.attention_ms(of.first, level, n_context), 4);
        }
        out << '\n';
    }
}

void write_parts(std::ostream& out, const ProfileReport& report) {
    out << "\nParts of a pass of one row, fitted, ms\n";
    write_part(out, "fixed", report.costs.fixed_ms());
    write_part(out, "head", report.costs.head_ms());
    for (const LayerClass& of : layer_classes(report.profile)) {
        write_part(out, concat("MLP", class_suffix(report.profile, of)),
                   report.costs.mlp_ms(of.first));
        write_attention(out, report, of);
    }
}

// Prints about four digits, whether a pass takes microseconds or seconds.
std::string describe(const CostSample* sample) {
    if (sample == nullptr) {
        return "-";
    }
    const int n_decimals = sample->ms < 10 ? 3 : sample->ms < 100 ? 2 : 1;
    return concat(format_fixed(sample->ms, n_decimals), " +-",
                  format_fixed(sample->spread_ms, n_decimals));
}

void write_passes(std::ostream& out, const ProfileReport& report) {
    const auto contexts = measured_contexts(report.profile);
    out << "\nPasses of the whole model, measured, ms\n" << std::right << "  rows, at context";
    for (const int n_context : contexts) {
        out << std::setw(kWideCellWidth) << n_context;
    }
    out << '\n';
    for (const int n_rows : measured_rows(report.profile)) {
        out << std::setw(6) << n_rows << std::setw(12) << "";
        for (const int n_context : contexts) {
            out << std::setw(kWideCellWidth)
                << describe(whole_pass(report.profile, n_context, n_rows));
        }
        out << '\n';
    }
}

void write_limit(std::ostream& out, const MachineLimits& limits, double ms, const LeastWork& work) {
    out << std::setw(kCellWidth) << format_fixed(ms, 4) << std::setw(kCellWidth)
        << format_fixed(work.memory_ms(limits), 4) << std::setw(kCellWidth + 2)
        << format_fixed(work.arithmetic_ms(limits), 4) << std::setw(kWideCellWidth + 2)
        << (ms > 0 ? format_percent(work.least_ms(limits) / ms) : "-") << '\n';
}

// How far passes and their parts are from what memory and cores can do.
void write_limits(std::ostream& out, const ProfileReport& report) {
    if (!report.limits) {
        return;
    }
    const MachineLimits& limits = *report.limits;
    out << "\nLimits of this machine: " << format_fixed(limits.gb_per_second, 1)
        << " GB/s from memory, " << format_fixed(limits.gmac_per_second, 0)
        << " billion multiply-adds/s in the first cache\n";
    write_label(out, "rows, at context");
    out << "  measured    memory  arithmetic   least / measured\n";
    for (const PassLimit& pass : report.passes) {
        write_label(out, concat(pass.n_rows, ", ", pass.n_context));
        write_limit(out, limits, pass.ms, pass.work);
    }
    write_label(out, "part of a pass of one row");
    out << "    fitted    memory  arithmetic     least / fitted\n";
    for (const PartLimit& part : report.parts) {
        write_label(out, part.n_context ? concat(part.name, ", at ", *part.n_context) : part.name);
        write_limit(out, limits, part.ms, part.work);
    }
}

void write_noise(std::ostream& out, const ProfileReport& report) {
    const ProfileNoise noise = noise_of(report.profile);
    out << "The machine was " << (noise.is_busy() ? "busy" : "quiet")
        << ": other programs disturbed " << format_percent(noise.busy_share)
        << " of the passes, and the spread of times is " << format_percent(noise.spread)
        << " (median)\n";
    if (report.kept.origin == KeptProfile::Origin::better) {
        out << "The saved profile stays: it was measured on a quieter machine\n";
    }
}

void write_plans(std::ostream& out, const PlansAtContext& at) {
    out << "\nPareto-optimal plans after " << at.n_context
        << " tokens: agreement, draft step, draft step / plain step\n";
    for (const FoundPlan& found : at.plans) {
        out << std::setw(kCellWidth) << format_fixed(100 * found.agreement(), 1) << " %"
            << std::setw(kCellWidth) << format_fixed(found.draft_step_ms, 3) << " ms"
            << std::setw(kCellWidth) << format_fixed(found.draft_step_ms / at.plain_step_ms, 2)
            << "  " << to_string(found.plan) << '\n';
    }
    if (at.plans.empty()) {
        out << "  none\n";
    }
}

ordered_json attention_json(const ProfileReport& report, const LayerClass& of) {
    auto list = ordered_json::array();
    for (const Level& level : measured_levels(report.profile)) {
        for (const int n_context : measured_contexts(report.profile)) {
            list.push_back({{"level", level_name(level)},
                            {"n_context", n_context},
                            {"ms", report.costs.attention_ms(of.first, level, n_context)}});
        }
    }
    return list;
}

ordered_json parts_json(const ProfileReport& report) {
    auto classes = ordered_json::array();
    for (const LayerClass& of : layer_classes(report.profile)) {
        classes.push_back({{"first_layer", of.first},
                           {"n_layers", of.n_layers},
                           {"mlp_ms", report.costs.mlp_ms(of.first)},
                           {"attention", attention_json(report, of)}});
    }
    return {{"fixed_ms", report.costs.fixed_ms()},
            {"head_ms", report.costs.head_ms()},
            {"classes", classes}};
}

ordered_json limits_json(const ProfileReport& report) {
    if (!report.limits) {
        return nullptr;
    }
    const auto with_work = [&](ordered_json object, double ms, const LeastWork& work) {
        object["ms"] = ms;
        object["bytes"] = work.bytes;
        object["multiply_adds"] = work.n_multiply_adds;
        object["memory_ms"] = work.memory_ms(*report.limits);
        object["arithmetic_ms"] = work.arithmetic_ms(*report.limits);
        return object;
    };
    auto passes = ordered_json::array();
    for (const PassLimit& pass : report.passes) {
        passes.push_back(with_work({{"n_context", pass.n_context}, {"n_rows", pass.n_rows}},
                                   pass.ms, pass.work));
    }
    auto parts = ordered_json::array();
    for (const PartLimit& part : report.parts) {
        parts.push_back(with_work(
            {{"part", part.name},
             {"n_context", part.n_context ? ordered_json(*part.n_context) : ordered_json(nullptr)}},
            part.ms, part.work));
    }
    return {{"gb_per_second", report.limits->gb_per_second},
            {"gmac_per_second", report.limits->gmac_per_second},
            {"passes", passes},
            {"parts", parts}};
}

ordered_json plans_json(const std::vector<PlansAtContext>& plans) {
    auto list = ordered_json::array();
    for (const PlansAtContext& at : plans) {
        for (const FoundPlan& found : at.plans) {
            list.push_back({{"n_context", at.n_context},
                            {"plan", to_string(found.plan)},
                            {"agreed", found.n_agreed},
                            {"n_rows", found.n_rows},
                            {"draft_step_ms", found.draft_step_ms},
                            {"source", to_string(found.source)}});
        }
    }
    return list;
}

}  // namespace

std::string_view to_string(FoundPlan::Source source) {
    switch (source) {
        case FoundPlan::Source::window:
            return "window";
        case FoundPlan::Source::knapsack:
            return "knapsack";
        case FoundPlan::Source::known:
            return "known";
    }
    return "";
}

std::string to_table(const ProfileReport& report) {
    std::ostringstream out;
    const FitQuality& quality = report.costs.quality();
    out << report.config.model_path.string() << ", " << report.config.n_threads
        << (report.config.n_threads == 1 ? " thread" : " threads") << '\n'
        << quality.n_samples << " kinds of passes measured; the error of the fit is "
        << format_percent(quality.median_error) << " (median), "
        << format_percent(quality.worst_error) << " (worst)\n";
    write_noise(out, report);
    write_parts(out, report);
    write_passes(out, report);
    write_limits(out, report);
    for (const PlansAtContext& at : report.plans) {
        write_plans(out, at);
    }
    if (report.saved_to) {
        out << "\nSaved as " << report.saved_to->string() << '\n';
        if (report.kept.origin == KeptProfile::Origin::extended) {
            out << "with the times at contexts above " << longest_context(report.profile)
                << " from an earlier profile\n";
        }
    }
    return out.str();
}

ordered_json to_json(const ProfileReport& report) {
    const FitQuality& quality = report.costs.quality();
    ordered_json object = profile_to_json(report.profile, report.machine);
    for (std::size_t i = 0; i < report.profile.samples.size(); ++i) {
        const auto fitted = fitted_ms(report.costs, report.profile.samples[i]);
        object["samples"][i]["fitted_ms"] = fitted ? ordered_json(*fitted) : ordered_json(nullptr);
    }
    object["model"] = report.config.model_path.string();
    object["n_threads"] = report.config.n_threads;
    object["n_ctx"] = report.config.n_ctx;
    object["fit"] = {{"n_samples", quality.n_samples},
                     {"median_error", quality.median_error},
                     {"worst_error", quality.worst_error}};
    const ProfileNoise noise = noise_of(report.profile);
    object["noise"] = {
        {"is_busy", noise.is_busy()}, {"busy_share", noise.busy_share}, {"spread", noise.spread}};
    object["parts"] = parts_json(report);
    object["limits"] = limits_json(report);
    object["plans"] = plans_json(report.plans);
    object["saved_to"] =
        report.saved_to ? ordered_json(report.saved_to->string()) : ordered_json(nullptr);
    return object;
}

}  // namespace knap
