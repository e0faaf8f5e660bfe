#include "runtime/files/json_file.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "base/partial_file.h"
#include "base/quoted.h"

namespace knap {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A profile of a model with a hundred layers is below one.
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{16} << 20;
// No file of ours has ten. Copying and writing a value take stack for each of its levels.
constexpr int kMaxLevels = 64;

// Another process may replace the file meanwhile, so its size is that of the file that is open.
std::string read_text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) {
        fail("cannot be read");
    }
    const auto n_bytes = static_cast<std::uintmax_t>(file.tellg());
    if (n_bytes > kMaxFileBytes) {
        fail("expected at most ", kMaxFileBytes, " bytes, found ", n_bytes);
    }
    std::string text(static_cast<std::size_t>(n_bytes), '\0');
    file.seekg(0);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file) {
        fail("cannot be read");
    }
    return text;
}

template <typename IsKind>
const json& member(const json& object, const char* name, const char* kind, IsKind is_kind) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (found == object.end()) {
        fail("expected ", kind, " `", name, "`, found none");
    }
    if (!is_kind(*found)) {
        fail("expected ", kind, " `", name, "`, found ", found->type_name());
    }
    return *found;
}

double checked_number(const json& value, const char* name, double least, double most) {
    const auto number = value.get<double>();
    if (!std::isfinite(number) || number < least || number > most) {
        fail("expected `", name, "` from ", least, " to ", most, ", found ", number);
    }
    return number;
}

}  // namespace

void write_json_file(const fs::path& path, const nlohmann::ordered_json& object) {
    std::error_code error;
    if (path.has_parent_path()) {
        fs::create_directories(path.parent_path(), error);
    }
    if (error) {
        fail(path.parent_path().string(), ": cannot create the folder: ", error.message());
    }
    write_whole_file(path, object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<json> read_json_file(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
        return std::nullopt;
    }
    if (!fs::is_regular_file(status)) {
        fail("expected a file, found something else");
    }
    const auto is_shallow = [](int depth, json::parse_event_t, const json&) {
        if (depth > kMaxLevels) {
            fail("expected at most ", kMaxLevels, " levels of JSON, found more");
        }
        return true;
    };
    json object = json::parse(read_text(path), is_shallow, /*allow_exceptions=*/false);
    if (!object.is_object()) {
        fail("expected a JSON object, found ",
             object.is_discarded() ? "damaged text" : object.type_name());
    }
    return object;
}

const json& object_in(const json& object, const char* name) {
    return member(object, name, "an object", [](const json& value) { return value.is_object(); });
}

const json& array_in(const json& object, const char* name) {
    return member(object, name, "a list", [](const json& value) { return value.is_array(); });
}

std::string text_in(const json& object, const char* name) {
    return member(object, name, "a text", [](const json& value) { return value.is_string(); })
        .get<std::string>();
}

bool flag_in(const json& object, const char* name) {
    return member(object, name, "true or false",
                  [](const json& value) { return value.is_boolean(); })
        .get<bool>();
}

int integer_in(const json& object, const char* name, int least, int most) {
    const json& value = member(object, name, "a whole number",
                               [](const json& found) { return found.is_number_integer(); });
    return static_cast<int>(checked_number(value, name, least, most));
}

double number_in(const json& object, const char* name, double least, double most) {
    const json& value =
        member(object, name, "a number", [](const json& found) { return found.is_number(); });
    return checked_number(value, name, least, most);
}

nlohmann::ordered_json file_header(std::string_view kind, int format) {
    return {{"kind", kind}, {"format", format}};
}

void check_file_header(const json& object, std::string_view kind, int format) {
    const std::string found_kind = text_in(object, "kind");
    if (found_kind != kind) {
        fail("expected ", in_quotes(kind), ", found ", in_quotes(found_kind));
    }
    const int found_format = integer_in(object, "format", 0, std::numeric_limits<int>::max());
    if (found_format != format) {
        fail("expected format ", format, ", found ", found_format);
    }
}

}  // namespace knap
