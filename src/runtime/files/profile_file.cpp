#include "runtime/files/profile_file.h"

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/log.h"
#include "forward/plan_text.h"
#include "runtime/files/json_file.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kProfileKind = "knap profile";
constexpr int kProfileFormat = 1;

void check_layers(const json& file, const std::vector<int>& expected) {
    const json& classes = array_in(file, "layer_classes");
    if (classes.size() != expected.size()) {
        fail("expected ", expected.size(), " layers, found ", classes.size());
    }
    if (classes != json(expected)) {
        fail("expected the layer classes of this model, found others");
    }
}

CostProfile profile_from(const json& file,
                         const MachineFingerprint& fingerprint,
                         const CostProfile& blank) {
    check_file_header(file, kProfileKind, kProfileFormat);
    check_fields(file, fingerprint);
    check_layers(file, blank.layer_classes);
    CostProfile profile = blank;
    for (const json& sample : array_in(file, "samples")) {
        profile.samples.push_back(sample_from(sample, blank.n_layers()));
    }
    if (!can_fit(profile)) {
        fail("expected a sample of the whole model over one row, found none");
    }
    return profile;
}

}  // namespace

ordered_json to_json(const CostSample& sample) {
    return {{"plan", to_string(sample.plan)},
            {"n_context", sample.n_context},
            {"n_rows", sample.n_rows},
            {"has_head", sample.has_head},
            {"ms", sample.ms},
            {"spread_ms", sample.spread_ms},
            {"n_measured", sample.n_measured},
            {"was_busy", sample.was_busy}};
}

CostSample sample_from(const json& object, int n_layers) {
    CostSample sample{
        .plan = parse_plan(text_in(object, "plan"), n_layers, "`plan`"),
        .n_context = integer_in(object, "n_context", 0, kAnyInteger),
        .n_rows = integer_in(object, "n_rows", 1, kMaxUbatch),
        .has_head = flag_in(object, "has_head"),
        .ms = number_in(object, "ms", 0, kAnyNumber),
        .spread_ms = number_in(object, "spread_ms", 0, kAnyNumber),
        .n_measured = integer_in(object, "n_measured", 1, kAnyInteger),
        .was_busy = object.contains("was_busy") && flag_in(object, "was_busy"),
    };
    if (!is_plausible(sample, n_layers)) {
        fail("expected the time of a pass, found ", sample.ms, " ms after ", sample.n_context,
             " tokens");
    }
    return sample;
}

std::optional<std::filesystem::path> profile_path(const MachineFingerprint& fingerprint) {
    const auto folder = cache_folder();
    return folder ? std::optional(*folder / concat("profile-", fingerprint.hash(), ".json"))
                  : std::nullopt;
}

ordered_json profile_to_json(const CostProfile& profile, const MachineFingerprint& fingerprint) {
    ordered_json file = file_header(kProfileKind, kProfileFormat);
    add_fields(file, fingerprint);
    file["layer_classes"] = profile.layer_classes;
    file["samples"] = ordered_json::array();
    for (const CostSample& sample : profile.samples) {
        file["samples"].push_back(to_json(sample));
    }
    return file;
}

void save_profile(const std::filesystem::path& path,
                  const CostProfile& profile,
                  const MachineFingerprint& fingerprint) {
    write_json_file(path, profile_to_json(profile, fingerprint));
}

std::optional<CostProfile> load_profile(const std::filesystem::path& path,
                                        const MachineFingerprint& fingerprint,
                                        const CostProfile& blank) {
    try {
        const auto file = read_json_file(path);
        return file ? std::optional(profile_from(*file, fingerprint, blank)) : std::nullopt;
    } catch (const Error& error) {
        log_warning_once("profile ", path.string(), " is ignored: ", error.what());
        return std::nullopt;
    }
}

}  // namespace knap
