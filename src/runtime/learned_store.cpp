#include "runtime/learned_store.h"

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
// Waits of a tenth of a second for other processes, at the end of a run.
constexpr int kLastWaits = 20;

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
    if (n_unsaved_ >= kEnough && !is_saving_) {
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
        try {
            written = write(most_waits);
        } catch (const std::exception& error) {
            log_info("what was learned is not saved: ", error.what());
        }
        lock.lock();
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

// Returns what the file has now.
Learned LearnedStore::write(int most_waits) const {
    std::filesystem::create_directories(path_.parent_path());
    int n_waits = 0;
    const FileLock lock(path_.parent_path() / kLockName, [&] {
        if (n_waits++ == most_waits) {
            fail(path_.string(), ": another process is saving");
        }
    });
    Learned all = load_learned(path_, fingerprint_, n_layers_);
    all.n_runs += has_saved_ ? 0 : 1;
    all.add(being_saved_);
    save_learned(path_, all, fingerprint_);
    drop_old_learned(path_.parent_path(), kMostFiles);
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
