#include "hub/fetch.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "base/partial_file.h"
#include "hub/cache.h"
#include "hub/choice.h"

namespace knap {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 5;

void create_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        fail(folder.string(), ": cannot create the folder: ", error.message());
    }
}

std::uint64_t size_or_zero(const fs::path& path) {
    std::error_code error;
    const std::uint64_t n_bytes = fs::file_size(path, error);
    return error ? 0 : n_bytes;
}

// Files that are already there count as nothing to fetch: they are checked first.
void check_space(const HubCache& cache, const std::vector<HubFile>& model) {
    std::uint64_t n_missing = 0;
    for (const HubFile& file : model) {
        const std::uint64_t n_kept = size_or_zero(cache.path(file)) == file.n_bytes
                                         ? file.n_bytes
                                         : size_or_zero(cache.partial_path(file));
        n_missing += file.n_bytes - std::min(n_kept, file.n_bytes);
    }
    check_place(cache.path(model.front()), n_missing);
}

// The observer of one file of several, whose bytes are counted together.
HubObserver observer_of_all(const HubObserver& observer,
                            const std::vector<HubFile>& model,
                            const std::uint64_t& n_before) {
    std::uint64_t n_total = 0;
    for (const HubFile& file : model) {
        n_total += file.n_bytes;
    }
    HubObserver whole = observer;
    whole.on_progress = [&observer, &n_before, n_total](std::uint64_t n_done, std::uint64_t,
                                                        const std::string& note) {
        if (observer.on_progress) {
            observer.on_progress(n_before + n_done, n_total, note);
        }
    };
    return whole;
}

class Fetch {
  public:
    Fetch(const HubRequest& request, const HubObserver& observer)
        : request_(request),
          observer_(observer),
          cache_(request.cache_folder, request.reference.repository) {}

    fs::path run() {
        const std::vector<HubFile> cached = cache_.files();
        if (request_.is_offline) {
            return from_cache(cached);
        }
        if (const auto listing = ask(cached)) {
            return up_to_date(*listing);
        }
        return from_cache(cached);
    }

  private:
    fs::path from_cache(const std::vector<HubFile>& cached) const {
        if (cached.empty()) {
            fail(request_.reference.repository, ": expected a model in ", cache_.folder().string(),
                 ", found none, and --offline forbids to fetch one");
        }
        return cache_.path(choose_files(cached, request_.reference).front());
    }

    bool is_cached(const std::vector<HubFile>& cached) const {
        try {
            choose_files(cached, request_.reference);
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    // Returns nullopt when the hub does not answer and the cache folder has the model.
    std::optional<HubListing> ask(const std::vector<HubFile>& cached) const {
        const bool has_other_choice = is_cached(cached);
        try {
            const auto connection = connect_to_hub(request_.access, observer_);
            return connection->list(request_.reference.repository,
                                    has_other_choice ? 1 : kAttempts);
        } catch (const Error& error) {
            if (!has_other_choice) {
                throw;
            }
            log_warning(error.what(), "; using the model in ", cache_.folder().string());
            return std::nullopt;
        }
    }

    fs::path up_to_date(const HubListing& listing) {
        const std::vector<HubFile> model = choose_files(listing.files, request_.reference);
        if (!cache_.has(model)) {
            for (const HubFile& file : model) {
                create_folder(cache_.path(file).parent_path());
            }
            const FileLock lock(cache_.folder() / ".lock", [&] { wait_for_others(); });
            if (!cache_.has(model)) {  // another process may just have fetched it
                download(listing.commit, model);
            }
        }
        log_info("using ", cache_.path(model.front()).string());
        return cache_.path(model.front());
    }

    void wait_for_others() const {
        if (observer_.is_cancelled && observer_.is_cancelled()) {
            throw HubCancelled{};
        }
        if (observer_.on_progress) {
            observer_.on_progress(0, 0, "waiting for another process that fetches it");
        }
    }

    void download(const std::string& commit, const std::vector<HubFile>& model) {
        check_space(cache_, model);
        std::uint64_t n_before = 0;
        const HubObserver whole = observer_of_all(observer_, model, n_before);
        const auto connection = connect_to_hub(request_.access, whole);
        for (const HubFile& file : model) {
            log_info("fetching ", file.path, " of ", request_.reference.repository, ", ",
                     file.n_bytes, " bytes");
            cache_.remove_stale_partials(file);
            connection->download(request_.reference.repository, commit, file, cache_.path(file),
                                 cache_.partial_path(file));
            n_before += file.n_bytes;
        }
        cache_.record(model);
    }

    const HubRequest& request_;
    const HubObserver& observer_;
    HubCache cache_;
};

}  // namespace

std::optional<fs::path> fetch_model(const HubRequest& request, const HubObserver& observer) {
    try {
        return Fetch(request, observer).run();
    } catch (const HubCancelled&) {
        return std::nullopt;
    }
}

}  // namespace knap
