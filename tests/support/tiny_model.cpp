#include "support/tiny_model.h"

#include <string>

#include "base/text.h"
#include "tools/exactness/temporary_folder.h"
#include "tools/make_model/random_model.h"
#include "tools/make_model/shapes.h"

namespace knap {

const std::filesystem::path& temporary_folder() {
    static const TemporaryFolder folder;
    return folder.path();
}

std::filesystem::path tiny_model(std::string_view shape,
                                 std::string_view type,
                                 std::uint64_t seed) {
    const auto path = temporary_folder() / concat(shape, "-", type, "-", seed, ".gguf");
    if (!std::filesystem::exists(path)) {
        RandomModelOptions options;
        options.shape = shape;
        options.type = type;
        options.seed = seed;
        write_random_model(options, path);
    }
    return path;
}

std::string test_name_of(std::string shape) {
    for (char& c : shape) {
        c = c == '-' || c == '.' ? '_' : c;
    }
    return shape;
}

std::vector<const char*> shapes_named(std::string_view beginning) {
    std::vector<const char*> names;
    for (const ModelShape& shape : known_shapes()) {
        if (shape.name.starts_with(beginning)) {
            names.push_back(shape.name.data());  // a literal
        }
    }
    return names;
}

}  // namespace knap
