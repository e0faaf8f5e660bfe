#include "runtime/learned_store.h"

#include <chrono>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/log.h"
#include "runtime/engine_impl.h"
#include "runtime/files/learned_file.h"

namespace knap {
namespace {

// One lock for all files of the folder: saving takes milliseconds.
constexpr const char* kLockName = "learned.lock";
// Of different models, settings and versions, that a folder has.
constexpr std::size_t kMostFiles = 32;
// Saved during a run when so much is new (Learned::weight()).
constexpr double kEnough = 1024;
// The end of a run waits five seconds for other processes. The pauses are short because the lock
// has no queue: one that comes back at the wrong times would never find it free.
constexpr std::chrono::milliseconds kPause{2};
constexpr int kLastWaits = 2500;

struct OthersAreSaving {};

// Those of models and settings that nobody uses any more. What is not dropped now is dropped later.
void drop_old(const std::filesystem::path& folder) {
    try {
        drop_old_learned(folder, kMostFiles);
    } catch (const std::exception& error) {
        log_info("old files of what was learned stay: ", error.what());
    }
}

}  // namespace

LearnedStore::LearnedStore(std::filesystem::path path, MachineFingerprint fingerprint, int n_layers)
    : path_(std::move(path)),
      fingerprint_(std::move(fingerprint)),
      n_layers_(n_layers),
      saved_(load_learned(path_, fingerprint_, n_layers_)) {}

LearnedStore::~LearnedStore() {
    if (writer_.joinable()) {
        writer_.join();
    }
    save(kLastWaits);
}

Learned LearnedStore::known() const {
    const std::lock_guard lock(mutex_);
    Learned all = saved_;
    all.add(being_saved_);
    all.add(unsaved_);
    return all;
}

void LearnedStore::add(Learned& notes) {
    const std::lock_guard lock(mutex_);
    n_unsaved_ += notes.weight();
    unsaved_.add(notes);
    notes = {};
    if (n_unsaved_ >= kEnough && !is_saving_ && !has_failed_) {
        start_writer();
    }
}

// The writer before this one has let go of the mutex for the last time.
void LearnedStore::start_writer() {
    try {
        is_saving_ = true;
        writer_ = std::jthread([this] { save(/*most_waits=*/0); });
    } catch (const std::system_error& error) {
        is_saving_ = false;
        log_info("what was learned is not saved yet: ", error.what());
    }
}

// One thread at a time. A folder that cannot be written to is no reason to disturb the user in
// every run.
void LearnedStore::save(int most_waits) {
    std::unique_lock lock(mutex_);
    being_saved_ = std::exchange(unsaved_, {});
    const double n_before = std::exchange(n_unsaved_, 0);
    if (!being_saved_.is_empty()) {
        lock.unlock();
        std::optional<Learned> written;
        bool has_failed = false;
        try {
            written = write(most_waits);
        } catch (const OthersAreSaving&) {
            log_info("what was learned is not saved: ", path_.string(),
                     ": another process is saving");
        } catch (const std::exception& error) {
            log_info("what was learned is not saved: ", error.what());
            has_failed = true;
        }
        lock.lock();
        has_failed_ = has_failed;
        if (written) {
            saved_ = std::move(*written);
            has_saved_ = true;
        } else {
            being_saved_.add(unsaved_);
            unsaved_ = std::move(being_saved_);
            n_unsaved_ += n_before;
        }
    }
    being_saved_ = {};
    is_saving_ = false;
}

// Returns what the file has now. Throws OthersAreSaving after `most_waits`.
Learned LearnedStore::write(int most_waits) const {
    std::filesystem::create_directories(path_.parent_path());
    int n_waits = 0;
    const auto give_up = [&] {
        if (n_waits++ == most_waits) {
            throw OthersAreSaving();
        }
    };
    const FileLock lock(path_.parent_path() / kLockName, give_up, kPause);
    Learned all = load_learned(path_, fingerprint_, n_layers_);
    all.n_runs += has_saved_ ? 0 : 1;
    all.add(being_saved_);
    save_learned(path_, all, fingerprint_);
    drop_old(path_.parent_path());
    return all;
}

std::unique_ptr<LearnedStore> open_learned_store(const Engine::Impl& engine) {
    if (!engine.config.memory) {
        return nullptr;
    }
    MachineFingerprint fingerprint = machine_fingerprint(engine);
    const auto path = learned_path(fingerprint);
    return path ? std::make_unique<LearnedStore>(*path, std::move(fingerprint),
                                                 engine.model.n_layers)
                : nullptr;
}

}  // namespace knap
