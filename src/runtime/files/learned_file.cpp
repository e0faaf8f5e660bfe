#include "runtime/files/learned_file.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/log.h"
#include "base/partial_file.h"
#include "runtime/files/json_file.h"
#include "runtime/files/plans_file.h"
#include "runtime/files/profile_file.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::string_view kLearnedKind = "knap learned";
constexpr int kLearnedFormat = 1;
constexpr std::string_view kNameStart = "learned-";
// In the order of CopiedText.
constexpr std::array<std::string_view, kCopiedTexts> kKinds{"prose", "structured", "choice",
                                                            "predicted"};
// In the order of CopyEvidence::Standing.
constexpr std::array<std::string_view, CopyEvidence::kStandings> kStandings{
    "contested", "leading", "agreed", "second", "rare"};

ordered_json to_json(const DraftCounts& drafts) {
    return {{"accepted", drafts.right}, {"judged", drafts.all}};
}

DraftCounts drafts_from(const json& object) {
    const double judged = number_in(object, "judged", 0, Learned::kMostDrafts);
    return {.right = number_in(object, "accepted", 0, judged), .all = judged};
}

template <std::size_t N>
std::size_t index_in(const std::array<std::string_view, N>& words,
                     const json& object,
                     const char* name) {
    const std::string found = text_in(object, name);
    const auto place = std::ranges::find(words, found);
    if (place == words.end()) {
        fail("expected `", name, "` to be one of ", join(words, ", "));
    }
    return static_cast<std::size_t>(place - words.begin());
}

// Cells are named, so that another order in a later version does no harm.
ordered_json copies_to_json(const Learned& learned) {
    auto list = ordered_json::array();
    for (std::size_t i = 0; i < learned.copies.size(); ++i) {
        for (std::size_t kind = 0; kind < kCopiedTexts; ++kind) {
            for (std::size_t cell = 0; cell < CopyAcceptance::kCells; ++cell) {
                const DraftCounts& drafts = learned.copies[i][kind][cell];
                if (drafts.all > 0) {
                    ordered_json object{
                        {"sampled", i == 1},
                        {"kind", kKinds[kind]},
                        {"standing", kStandings[cell / CopyAcceptance::kBins]},
                        {"longest_match", CopyAcceptance::longest_of(cell % CopyAcceptance::kBins)},
                    };
                    object.update(to_json(drafts));
                    list.push_back(std::move(object));
                }
            }
        }
    }
    return list;
}

void add_copies_from(const json& object, Learned& learned) {
    const std::size_t kind = index_in(kKinds, object, "kind");
    const std::size_t standing = index_in(kStandings, object, "standing");
    const int longest = integer_in(object, "longest_match", 1, kAnyInteger);
    std::size_t bin = 0;
    while (CopyAcceptance::longest_of(bin) < longest) {
        ++bin;
    }
    learned
        .copies[flag_in(object, "sampled") ? 1 : 0][kind][standing * CopyAcceptance::kBins + bin] =
        drafts_from(object);
}

int run_in(const json& object, int n_runs) {
    return integer_in(object, "run", 0, n_runs);
}

ordered_json with_run(ordered_json object, int run) {
    object["run"] = run;
    return object;
}

void add_way_from(const json& object, Learned& learned) {
    Learned::Way way{.name = text_in(object, "way"),
                     .bucket = context_bucket(integer_in(object, "context", 0, kAnyInteger)),
                     .is_sampled = flag_in(object, "sampled")};
    if (way.name.size() > Learned::kLongestName) {
        fail("expected a `way` of at most ", Learned::kLongestName, " bytes, found ",
             way.name.size());
    }
    learned.ways[std::move(way)] = {.drafts = drafts_from(object),
                                    .run = run_in(object, learned.n_runs)};
}

const json& list_in(const json& file, const char* name, std::size_t most) {
    const json& list = array_in(file, name);
    if (list.size() > most) {
        fail("expected at most ", most, " of `", name, "`, found ", list.size());
    }
    return list;
}

Learned learned_from(const json& file, const MachineFingerprint& fingerprint, int n_layers) {
    check_file_header(file, kLearnedKind, kLearnedFormat);
    check_fields(file, fingerprint);
    Learned learned{.n_runs = integer_in(file, "runs", 0, kAnyInteger / 2)};
    for (const json& object : list_in(file, "ways", Learned::kMostWays)) {
        add_way_from(object, learned);
    }
    for (const json& object : list_in(file, "copies", 2 * kCopiedTexts * CopyAcceptance::kCells)) {
        add_copies_from(object, learned);
    }
    for (const json& object : list_in(file, "plans", Learned::kMostPlans)) {
        learned.plans.push_back({.plan = plan_from(object, n_layers),
                                 .speed = number_in(object, "speed", 0, kAnyNumber),
                                 .run = run_in(object, learned.n_runs)});
    }
    for (const json& object : list_in(file, "costs", Learned::kMostCosts)) {
        learned.costs.push_back(
            {.sample = sample_from(object, n_layers), .run = run_in(object, learned.n_runs)});
    }
    return learned;
}

}  // namespace

std::optional<fs::path> learned_path(const MachineFingerprint& fingerprint) {
    const auto folder = cache_folder();
    return folder ? std::optional(*folder / concat(kNameStart, fingerprint.hash(), ".json"))
                  : std::nullopt;
}

ordered_json learned_to_json(const Learned& learned) {
    ordered_json object{{"runs", learned.n_runs}, {"ways", ordered_json::array()}};
    for (const auto& [way, seen] : learned.ways) {
        ordered_json one{{"way", way.name},
                         {"context", first_of_bucket(way.bucket)},
                         {"sampled", way.is_sampled}};
        one.update(to_json(seen.drafts));
        object["ways"].push_back(with_run(std::move(one), seen.run));
    }
    object["copies"] = copies_to_json(learned);
    object["plans"] = ordered_json::array();
    for (const auto& [plan, speed, run] : learned.plans) {
        ordered_json one = to_json(plan);
        one["speed"] = speed;
        object["plans"].push_back(with_run(std::move(one), run));
    }
    object["costs"] = ordered_json::array();
    for (const auto& [sample, run] : learned.costs) {
        object["costs"].push_back(with_run(to_json(sample), run));
    }
    return object;
}

void save_learned(const fs::path& path,
                  const Learned& learned,
                  const MachineFingerprint& fingerprint) {
    ordered_json file = file_header(kLearnedKind, kLearnedFormat);
    add_fields(file, fingerprint);
    file.update(learned_to_json(learned));
    write_json_file(path, file);
}

Learned load_learned(const fs::path& path, const MachineFingerprint& fingerprint, int n_layers) {
    try {
        const auto file = read_json_file(path);
        return file ? learned_from(*file, fingerprint, n_layers) : Learned();
    } catch (const Error& error) {
        log_warning_once("what was learned in ", path.string(), " is ignored: ", error.what());
        return {};
    }
}

void drop_old_learned(const fs::path& folder, std::size_t n_kept) {
    remove_abandoned(folder, kNameStart);
    std::vector<std::pair<fs::file_time_type, fs::path>> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        const auto written = entry.last_write_time(error);
        if (!error && name.starts_with(kNameStart) && name.ends_with(".json")) {
            files.emplace_back(written, entry.path());
        }
    }
    std::ranges::sort(files, std::ranges::greater());
    for (std::size_t i = n_kept; i < files.size(); ++i) {
        fs::remove(files[i].second, error);
    }
}

}  // namespace knap
