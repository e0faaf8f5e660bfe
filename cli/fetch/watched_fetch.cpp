#include "cli/fetch/watched_fetch.h"

#include "base/error.h"
#include "cli/exit_code.h"
#include "cli/fetch/fetch_note.h"
#include "cli/flags/flag_group.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "hub/fetch.h"

namespace knap {
namespace {

constexpr const char* kDefaultEndpoint = "https://huggingface.co";
constexpr int kMaxTimeout = 3600;

bool is_true(const std::string& text) {
    return !text.empty() && text != "0" && text != "false" && text != "FALSE" && text != "no";
}

HubAccess hub_access(const HubSettings& settings, const HubEnvironment& environment) {
    HubAccess access{
        .endpoint = environment.endpoint.empty() ? kDefaultEndpoint : environment.endpoint,
        .token = settings.token.empty() ? environment.token : settings.token,
        .certificates = environment.certificates};
    if (!environment.timeout.empty()) {
        access.stall_s = parse_integer("$HF_HUB_DOWNLOAD_TIMEOUT", environment.timeout,
                                       {.min = 1, .max = kMaxTimeout});
    }
    return access;
}

HubRequest hub_request(const HubSettings& settings, const Environment& environment) {
    if (environment.cache_folder.empty()) {
        fail("--hf-repo: no cache folder known: set KNAP_CACHE or HOME");
    }
    HubRequest request{.reference = settings.reference,
                       .access = hub_access(settings, environment.hub),
                       .is_offline = settings.is_offline || is_true(environment.hub.offline),
                       .cache_folder = environment.cache_folder};
    if (!settings.file.empty()) {
        request.reference.file = settings.file;
    }
    return request;
}

}  // namespace

std::filesystem::path watched_fetch(const HubSettings& settings, const Environment& environment) {
    const HubRequest request = hub_request(settings, environment);
    const InterruptScope scope;
    ProgressBar bar("fetch");
    FetchNote note;
    HubObserver observer;
    observer.is_cancelled = [&scope] { return scope.signal() != 0; };
    observer.on_progress = [&](std::uint64_t n_done, std::uint64_t n_bytes,
                               const std::string& instead) {
        const double fraction =
            n_bytes > 0 ? static_cast<double>(n_done) / static_cast<double>(n_bytes) : 0;
        const auto now = std::chrono::steady_clock::now();
        bar.update(fraction,
                   instead.empty() ? note.received(n_done, n_bytes, now) : note.other(instead));
    };
    const auto path = fetch_model(request, observer);
    bar.finish();
    if (!path) {
        throw InterruptedError("interrupted: the same command goes on from what was fetched");
    }
    return *path;
}

}  // namespace knap
