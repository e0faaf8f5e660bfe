// `knap report`: the content of the page. report_page_test.cpp opens it in a browser.
#include "cli/command.h"
#include "support/bench_fixture.h"

namespace knap::report_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

// Every test has its own folder.
class Report : public ::testing::Test {
  protected:
    Report() { fs::create_directories(folder_); }
    ~Report() override { fs::remove_all(folder_); }

    fs::path write_bytes(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    fs::path write(const std::string& name, const json& file) const {
        return write_bytes(name, file.dump());
    }
    ProcessResult report(const Words& words) const {
        return run_knap(Words{"report"} + words + Words{"-o", page_.string()});
    }
    // The page for valid files.
    std::string page_of(const std::vector<json>& files) const {
        Words names;
        for (const json& file : files) {
            names.push_back(write("run" + std::to_string(names.size()) + ".json", file).string());
        }
        const auto result = report(names);
        EXPECT_EQ(result.exit_code, 0) << result.error;
        EXPECT_EQ(result.error, "");
        return read_text(page_);
    }
    // The fixture with its member at `path` set to `value`.
    static json with(const char* path, const json& value) {
        json file = bench_fixture();
        file[json::json_pointer(path)] = value;
        return file;
    }

    fs::path folder_ = temporary_folder() / "report_test";
    fs::path page_ = folder_ / "page.html";
};

// A file with only these rows.
json file_of(const std::vector<json>& rows) {
    json file = bench_fixture();
    file["rows"] = rows;
    return file;
}

// Used instead of HasSubstr, because a page is too long to print.
bool has(const std::string& page, const std::string& part) {
    return page.find(part) != std::string::npos;
}

// The section with this id.
std::string section(const std::string& page, const std::string& id) {
    const auto begin = page.find("<section id=\"" + id + "\">");
    EXPECT_NE(begin, std::string::npos) << id;
    return page.substr(begin, page.find("</section>", begin) - begin);
}

std::string figure(const std::string& page, const std::string& title) {
    const auto begin = page.find("<figure>\n<h3>" + title);
    EXPECT_NE(begin, std::string::npos) << title;
    return begin == std::string::npos ? ""
                                      : page.substr(begin, page.find("</figure>", begin) - begin);
}

TEST_F(Report, HasEveryFigureAndTable) {
    const std::string page = page_of({bench_fixture()});
    for (const char* title :
         {"Speedup by task", "Speedup against prompt length",
          "Tokens per second against prompt length", "Speedup against context depth",
          "Tokens per second against context depth", "Acceptance by position",
          "Where the time goes", "Predicted against measured",
          "Levels by layer and length: knapspec", "Levels by layer and length: swift",
          "Cost of a step by plan", "Cost of a verification"}) {
        EXPECT_THAT(figure(page, title), HasSubstr("<svg")) << title;
    }
    for (const char* id : {"summary", "paper", "rows", "run"}) {
        EXPECT_NE(section(page, id), "") << id;
    }
    EXPECT_EQ(count(section(page, "rows"), "<tr>"), 1 + bench_fixture()["rows"].size());
}

TEST_F(Report, IsSelfContained) {
    const std::string page = page_of({bench_fixture()});
    for (const char* loads : {" src=", "@import", "url(", "<link", "href=\"http", "fetch("}) {
        EXPECT_FALSE(has(page, loads)) << loads;
    }
    EXPECT_LT(page.size(), 2u << 20);
}

TEST_F(Report, NamesInPicturesAreUnique) {
    const std::string page = page_of({bench_fixture()});
    EXPECT_EQ(count(page, "id='f0-gpPt5'"), 1u);
    EXPECT_EQ(count(page, "id='gp"), 0u);
    EXPECT_EQ(count(page, "href='#gp"), 0u);
}

TEST_F(Report, HeadNamesModelHostAndSettings) {
    const std::string page = page_of({bench_fixture()});
    EXPECT_TRUE(has(page, "<title>knap: SmolLM2 135M Instruct, Q4_1</title>"));
    EXPECT_TRUE(has(page, "<h1>SmolLM2 135M Instruct, Q4_1</h1>"));
    EXPECT_TRUE(has(page, "Q4_1,Q8_0 · a processor"));
    const std::string run = section(page, "run");
    for (const char* text :
         {"<dt>name</dt><dd>SmolLM2-135M-Instruct</dd>",
          "knap 0.1.0 on CPU; memory bandwidth 40.0 GB/s", "<dt>cores</dt><dd>2</dd>",
          "<dt>file bytes</dt><dd>98.0 MB</dd>", "<dt>threads</dt><dd>2</dd>",
          "<dt>strategies</dt><dd>autoregressive, lookup, knapspec, swift</dd>",
          "<td>pg19.jsonl:7</td><td>9210 tokens are too many</td>"}) {
        EXPECT_THAT(run, HasSubstr(text));
    }
}

TEST_F(Report, ShowsTheCommandToRunItAgain) {
    json file = bench_fixture({.tasks = {"a b.jsonl", "it's.jsonl"}, .depths = {0, 512}});
    EXPECT_THAT(
        section(page_of({file}), "run"),
        HasSubstr("knap bench -m model.gguf --data &#39;a b.jsonl,it&#39;\\&#39;&#39;s.jsonl"
                  "&#39; -d 0,512 --strategies autoregressive,lookup,knapspec,swift -n 128 "
                  "--limit 3 --repeat 3 -t 2 -c 8192 -ctk f16 -ctv f16 --kernels auto -o "
                  "run0.json</code>"));
    file["settings"]["skip"] = 5;
    EXPECT_THAT(section(page_of({file}), "run"), HasSubstr("--limit 3 --skip 5 --repeat 3 "));
    file["settings"]["temperature"] = 0.7;
    file["settings"]["seed"] = 7;
    EXPECT_THAT(section(page_of({file}), "run"),
                HasSubstr("--temp 0.7 --top-k 40 --top-p 0.95 --min-p 0.05 --seed 7 --acceptance "
                          "greedy -o run0.json"));
    file["settings"]["data"] = {"built-in"};
    EXPECT_THAT(section(page_of({file}), "run"), HasSubstr("-m model.gguf -d 0,512 "));
    file["settings"]["exact"] = false;
    file["settings"]["fresh_strategies"] = true;
    EXPECT_THAT(section(page_of({file}), "run"),
                HasSubstr("--kernels auto --exact off --fresh-strategies --temp 0.7 "));
    file["settings"]["parallel"] = 4;
    EXPECT_THAT(section(page_of({file}), "run"),
                HasSubstr("--kernels auto --parallel 4 --exact off --fresh-strategies "));
    file["settings"]["parallel"] = 1;
    file["settings"]["profile"] = false;
    file["settings"]["memory"] = true;
    EXPECT_THAT(section(page_of({file}), "run"),
                HasSubstr("--fresh-strategies --profile none --memory on --temp 0.7 "));
    file["settings"]["profile"] = true;
    file["settings"]["memory"] = false;
    file["settings"].erase("exact");
    file["settings"].erase("fresh_strategies");
    EXPECT_THAT(section(page_of({file}), "run"), HasSubstr("--kernels auto --temp 0.7 "));
}

TEST_F(Report, ShowsSeveralSessionsAtOnce) {
    json file = bench_fixture();
    EXPECT_FALSE(has(page_of({file}), "<section id=\"loads\">"));
    file["settings"]["parallel"] = 4;
    file["loads"] = {{{"strategy", "a<b"},
                      {"options", ""},
                      {"acceptance", "greedy"},
                      {"turns",
                       {{{"n_tokens", 18},
                         {"wall_ms", 120},
                         {"tokens_per_second", 150},
                         {"first_median_ms", 20},
                         {"first_p95_ms", 31},
                         {"gap_median_ms", 2.5},
                         {"gap_p95_ms", 4.5},
                         {"gap_max_ms", 9}}}},
                      {"throughput", {{"mean", 1.25}, {"low", nullptr}, {"high", nullptr}}},
                      {"n_prompts", 2},
                      {"n_identical", 2},
                      {"is_projection", false}}};
    const std::string loads = section(page_of({file}), "loads");
    EXPECT_THAT(loads, HasSubstr("run0.json: 4 sessions"));
    EXPECT_THAT(loads, HasSubstr("<td>a&lt;b</td>"));
    for (const char* text : {"1.25x", "150.0", "20 ms", "4.5 ms", "2 of 2"}) {
        EXPECT_THAT(loads, HasSubstr(text));
    }
}

TEST_F(Report, SummaryIsTheGeometricMeanOfPromptsWithItsInterval) {
    // Logarithms 0.3365 and 0.4055: mean 0.3710, half-width of the interval 12.71 * 0.0488 /
    // sqrt(2).
    const std::string page =
        page_of({file_of({bench_row("knapspec", "qa", 1.4), bench_row("knapspec", "qa", 1.5)})});
    EXPECT_THAT(section(page, "summary"), HasSubstr("<b>1.45×</b> <small>0.93 to 2.25</small>"));
}

// A row that decodes twice as fast: (450 + 640) / (450 + 320).
TEST_F(Report, TablesShowWholeRequestsBesideDecoding) {
    json file = file_of({bench_row("knapspec", "qa", 2)});
    const std::string page = page_of({file});
    for (const char* part : {"summary", "rows"}) {
        EXPECT_THAT(section(page, part), HasSubstr("whole request, 95 % interval"));
        EXPECT_THAT(section(page, part), HasSubstr("<b>1.42×</b> <small>1.37 to 1.46</small>"));
    }
    file["rows"][0].erase("request_speedup");
    EXPECT_THAT(section(page_of({file}), "rows"), HasSubstr("<b>1.42×</b>"))
        << "of a file from before it was written";
}

TEST_F(Report, OnePromptKeepsTheIntervalOfItsTurns) {
    const std::string page = page_of({file_of({bench_row("knapspec", "qa", 2)})});
    EXPECT_THAT(section(page, "summary"), HasSubstr("<b>2.00×</b> <small>1.90 to 2.10</small>"));
}

TEST_F(Report, AcceptanceIsOverAllDraftedTokens) {
    json many = bench_row("knapspec", "qa", 1);
    many["n_drafted"] = 910;
    many["n_accepted"] = 137;
    const std::string page = page_of({file_of({bench_row("knapspec", "qa", 1), many})});
    EXPECT_THAT(section(page, "summary"), HasSubstr(">20.0 %<"));  // 200 of 1000
}

TEST_F(Report, TimesArePerToken) {
    json row = bench_row("knapspec", "qa", 1);
    row["turns"] = {{{"decode_ms", 30.0},
                     {"plain_ms", 60.0},
                     {"n_generated", 10},
                     {"draft_ms", 10.0},
                     {"verify_ms", 12.0},
                     {"search_ms", 6.0},
                     {"other_ms", 2.0}}};
    EXPECT_THAT(figure(page_of({file_of({row})}), "Where the time goes"),
                HasSubstr("knapspec: 3.00 ms per token; draft 1.00 verify 1.20 search 0.60 other "
                          "0.20; plain 6.00"));
}

TEST_F(Report, AcceptanceByPositionIsWeightedByRounds) {
    json few = bench_row("knapspec", "qa", 1);
    few["rounds"] = 20;
    few["acceptance_by_position"] = {0.4, 0.3};
    EXPECT_THAT(
        figure(page_of({file_of({bench_row("knapspec", "qa", 1), few})}), "Acceptance by position"),
        testing::AllOf(HasSubstr("knapspec, position 1: 70.0 %"),
                       HasSubstr("knapspec, position 2: 60.0 %"),
                       HasSubstr("knapspec, position 3: 50.0 %")));
}

TEST_F(Report, PromptsAreGroupedByTheNearestPowerOfTwo) {
    std::vector<json> rows;
    for (const int n_prompt : {500, 520, 2000}) {
        rows.push_back(bench_row("lookup", "qa", n_prompt == 520 ? 1.44 : 1));
        rows.back()["n_prompt"] = n_prompt;
    }
    const std::string drawn = figure(page_of({file_of(rows)}), "Speedup against prompt length");
    EXPECT_THAT(drawn, HasSubstr("lookup at 510: 1.20×, 2 prompts"));
    EXPECT_THAT(drawn, HasSubstr("lookup at 2.0K: 1.00×, 1 prompt"));
}

TEST_F(Report, PredictionsAreComparedWithMeasurements) {
    std::vector<json> rows;
    for (const double speedup : {1.0, 1.5, 2.0}) {
        rows.push_back(bench_row("knapspec", "qa", speedup));
    }
    const std::string drawn = figure(page_of({file_of(rows)}), "Predicted against measured");
    EXPECT_THAT(drawn, HasSubstr("error of the predictions is 10.0 %; the correlation is 1.00."));
    EXPECT_THAT(drawn, HasSubstr("knapspec, qa 1: predicted 2.20×, measured 2.00×"));
}

TEST_F(Report, HeatMapShadesModulesByTheirLevel) {
    json row = bench_row("knapspec", "qa", 1);
    row["levels"] =
        json::array({{{"plan", "a0-9=skip,a10-19=w16+64"}, {"n_context", 600}, {"n_tokens", 96}}});
    const std::string drawn = figure(page_of({file_of({row})}), "Levels by layer and length");
    EXPECT_THAT(drawn, HasSubstr("75.0 % of the tokens"));
    EXPECT_THAT(drawn, HasSubstr("attention 512"));
    const std::string color = "fill = 'rgb( 47, 127, 209)'";
    EXPECT_EQ(count(drawn, color), 60u) << "a cell for each module";
    EXPECT_EQ(count(drawn, color + " fill-opacity='0.00'"), 10u) << "skipped";
    EXPECT_EQ(count(drawn, color + " fill-opacity='0.40'"), 10u) << "windowed";
}

TEST_F(Report, FiguresWithoutDataGiveTheReason) {
    json row = bench_row("autoregressive", "synthetic", 1);
    row["depth"] = 512;
    json file = file_of({row});
    file["costs"] = json::array();
    const std::string page = page_of({file});
    for (const char* text :
         {"the files contain only synthetic contexts", "no strategy drafted anything",
          "no strategy predicted its speed", "no strategy drafted with parts of the model",
          "no profile was saved for this model and machine"}) {
        EXPECT_TRUE(has(page, text)) << text;
    }
    EXPECT_FALSE(has(page, "Speedup against prompt length"));
}

TEST_F(Report, ProjectionsAreLabelledInEveryFigureAndTable) {
    const std::string page = page_of({bench_fixture({.has_projections = true})});
    for (const char* title :
         {"Speedup by task", "Speedup against prompt length", "Speedup against context depth",
          "Tokens per second against prompt length", "Tokens per second against context depth",
          "Acceptance by position", "Where the time goes", "Predicted against measured",
          "Levels by layer and length: swift (projection)"}) {
        EXPECT_THAT(figure(page, title), HasSubstr("includes projections")) << title;
    }
    EXPECT_THAT(figure(page, "Cost of a verification"), Not(HasSubstr("projection")));
    for (const char* id : {"summary", "rows"}) {
        EXPECT_THAT(section(page, id), HasSubstr("</span>knapspec (projection)</td>"));
        EXPECT_THAT(section(page, id), HasSubstr("</span>lookup</td>"));
    }
    EXPECT_FALSE(has(page_of({bench_fixture()}), "rojection"));
}

TEST_F(Report, HighlightsShowTheFastestStrategy) {
    json projected = bench_row("knapspec", "qa", 1.5);
    projected["is_projection"] = true;
    const std::string page = page_of({file_of(
        {bench_row("autoregressive", "qa", 1.6), bench_row("lookup", "qa", 1.3), projected})});
    const auto begin = page.find("<div class=\"tile\">");
    EXPECT_THAT(page.substr(begin, page.find("<section", begin) - begin),
                testing::AllOf(HasSubstr("</span>knapspec (projection)</h3>"),
                               HasSubstr("<b>1.50×</b>over plain decoding"),
                               HasSubstr("<b>300</b>tokens per second"),
                               HasSubstr("<b>70.0 %</b>of drafted tokens accepted")));
}

TEST_F(Report, InterruptedFileIsMarked) {
    const char* words = "interrupted: not every row was measured";
    EXPECT_TRUE(has(page_of({bench_fixture({.is_complete = false})}), words));
    EXPECT_FALSE(has(page_of({bench_fixture()}), words));
}

TEST_F(Report, SeveralFilesAreComparedByName) {
    const std::string page =
        page_of({bench_fixture(), bench_fixture({.model_name = "other", .n_layers = 16})});
    EXPECT_TRUE(has(page, "<h1>Other, 135M, Q4_1</h1>"));
    for (const char* title : {"Speedup by task", "Acceptance by position"}) {
        EXPECT_THAT(figure(page, title), HasSubstr("●</span>knapspec · run0.json"));
        EXPECT_THAT(figure(page, title), HasSubstr("■</span>knapspec · run1.json"));
    }
    EXPECT_THAT(section(page, "summary"), HasSubstr("knapspec · run1.json"));
}

TEST_F(Report, FilesWithTheSameNameAreShownByPath) {
    fs::create_directories(folder_ / "b");
    const fs::path one = write("run.json", bench_fixture());
    const fs::path other = write("b/run.json", bench_fixture());
    ASSERT_EQ(report({one.string(), other.string()}).exit_code, 0);
    EXPECT_TRUE(has(read_text(page_), "knapspec · " + other.string()));
}

TEST_F(Report, VariantsOfAStrategyAreSeparateSeries) {
    json ratio = bench_row("knapspec", "qa", 1.5);
    ratio["acceptance"] = "ratio";
    json longer = bench_row("lookup", "qa", 1.5);
    longer["options"] = "draft_max=16";
    const std::string summary = section(page_of({file_of({bench_row("knapspec", "qa", 1), ratio,
                                                          bench_row("lookup", "qa", 1), longer})}),
                                        "summary");
    for (const char* name :
         {">knapspec, greedy<", ">knapspec, ratio<", ">lookup<", ">lookup draft_max=16<"}) {
        EXPECT_THAT(summary, HasSubstr(name));
    }
}

TEST_F(Report, PaperValuesAreShownForTheSameShape) {
    const BenchFixture llama{.n_layers = 16, .n_embd = 2048};
    const std::string paper = section(page_of({bench_fixture(llama)}), "paper");
    EXPECT_THAT(paper, HasSubstr("<td>llama-3.2-1b</td><td>govreport.jsonl</td>"));
    EXPECT_THAT(paper, HasSubstr("<td>KnapSpec</td><td class=\"number\">1.11×</td>"
                                 "<td class=\"number\">96.1 %</td>"));
    EXPECT_THAT(paper, HasSubstr("<td>SWIFT</td><td class=\"number\">0.91×</td>")) << "PG19";
    EXPECT_EQ(count(paper, "<tr>"), 5u) << "two methods on two sets of data";
    EXPECT_THAT(section(page_of({bench_fixture()}), "paper"),
                HasSubstr("None of the paper's values match"));
}

TEST_F(Report, PaperValuesAreLeftOutWhenSamplingDiffers) {
    json file = bench_fixture({.n_layers = 32, .n_embd = 4096});
    file["settings"].update({{"temperature", 0.7}, {"top_k", 50}, {"top_p", 0.95}});
    EXPECT_THAT(section(page_of({file}), "paper"), HasSubstr("1.23×")) << "Table 2";
    file["settings"]["top_k"] = 40;
    EXPECT_THAT(section(page_of({file}), "paper"), HasSubstr("None of the paper's values match"));
}

TEST_F(Report, TextFromFilesIsEscaped) {
    const std::string nasty = "<b>x</b>'\");alert(1)//`touch made`\\";
    json file = bench_fixture();
    for (json& row : file["rows"]) {
        row["task"] = nasty;
        row["id"] = nasty;
        row["options"] = row["strategy"] == "knapspec" ? nasty : "";
    }
    file["rows"][2]["options"] = "";
    file["model"]["name"] = nasty;
    file["settings"]["kernels"] = nasty;
    const std::string page = page_of({file});
    EXPECT_FALSE(has(page, "<b>x"));
    EXPECT_FALSE(has(page, "'\");alert"));
    EXPECT_TRUE(has(figure(page, "Speedup by task"), "’”);alert(1)//´touch made´/"));
    EXPECT_FALSE(fs::exists("made")) << "gnuplot ran a command";
}

TEST_F(Report, PrintsTheFileItWrote) {
    const auto result = report({write("run.json", bench_fixture()).string()});
    EXPECT_THAT(result.output, testing::StartsWith(page_.string() + ": "));
    EXPECT_THAT(result.output, HasSubstr("B\n"));
}

struct BadFile {
    const char* name;
    const char* path;  // of the member that is set
    json value;
    const char* message;
};

TEST_F(Report, InvalidFilesAreErrorsOfOneLine) {
    const BadFile cases[] = {
        {"format", "/format", 2, "expected format 1 of knap bench, found 2"},
        {"format of text", "/format", "1", "expected a file of knap bench, found no `format`"},
        {"no rows", "/rows", json::array(), "expected at least one of `rows`, found none"},
        {"rows of text", "/rows", "x", "expected a list `rows`, found string"},
        {"row of text", "/rows/2", "x", "row 3: expected a text `data`, found none"},
        {"layers", "/model/n_layers", 0, "model: expected `n_layers` from 1 to"},
        {"plan", "/rows/2/levels/1/plan", "a99=skip", "row 3: level 2: `plan`: "},
        {"cost", "/costs/0/plan", "?", "cost 1: `plan`: "},
        {"time", "/rows/0/turns/1/plain_ms", 0, "row 1: turn 2: expected `plain_ms` from"},
        {"speedup", "/rows/0/speedup/mean", -1, "row 1: speedup: expected `mean` from"},
        {"share", "/rows/1/acceptance_by_position/0", 2,
         "row 2: acceptance_by_position 1: expected a number from 0 to 1, found 2"},
        {"settings", "/settings", nullptr, "expected an object `settings`, found null"},
        {"setting", "/settings/strategies/1", 7,
         "settings: strategies 2: expected a text, found number"},
    };
    for (const BadFile& bad : cases) {
        SCOPED_TRACE(bad.name);
        const fs::path file = write("bad.json", with(bad.path, bad.value));
        expect_error(report({file.string()}), 1, file.string() + ": " + bad.message);
        EXPECT_FALSE(fs::exists(page_));
    }
}

TEST_F(Report, MissingFieldsAreNamed) {
    for (const char* name : {"host", "device", "is_complete", "costs", "skipped", "knap"}) {
        json file = bench_fixture();
        file.erase(name);
        expect_error(report({write("bad.json", file).string()}), 1, std::string("`") + name + "`");
    }
    for (const char* name : {"turns", "is_projection", "levels", "predicted", "strategy"}) {
        json file = bench_fixture();
        file["rows"][4].erase(name);
        expect_error(report({write("bad.json", file).string()}), 1, "row 5: expected ");
    }
}

TEST_F(Report, FilesThatAreNotBenchmarksAreErrors) {
    expect_error(report({write_bytes("bad.json", "not json").string()}), 1,
                 "bad.json: expected a JSON object, found damaged text");
    expect_error(report({write_bytes("bad.json", "[]").string()}), 1,
                 "expected a JSON object, found array");
    expect_error(report({write_bytes("bad.json", "").string()}), 1, "bad.json: ");
    expect_error(report({(folder_ / "none.json").string()}), 1, "none.json: found no such file");
    expect_error(report({folder_.string()}), 1, "expected a file, found something else");
}

TEST_F(Report, PagesThatCannotBeWrittenAreErrors) {
    const std::string file = write("run.json", bench_fixture()).string();
    expect_error(run_knap({"report", file, "-o", folder_.string()}), 1,
                 "expected a regular file or no file, found something else");
    expect_error(run_knap({"report", file, "-o", (folder_ / "none" / "page.html").string()}), 1,
                 "does not exist");
    expect_error(run_knap({"report", file, "-o", file}), 2,
                 "--output: expected a file that is not an input");
    EXPECT_EQ(json::parse(read_text(file)), bench_fixture()) << "the file is as it was";
}

TEST_F(Report, UsageIsChecked) {
    const std::string file = write("run.json", bench_fixture()).string();
    expect_error(run_knap({"report"}), 2, "files");
    expect_error(report({file, file}), 2, "expected each file once");
}

TEST_F(Report, MissingGnuplotErrorNamesThePackage) {
    ProcessRequest request;
    request.arguments = {"report", write("run.json", bench_fixture()).string(), "-o",
                         page_.string()};
    request.environment = {{"PATH", "/nowhere"}};
    expect_error(run_knap(request), 1, "to draw pictures, install the package gnuplot-nox");
}

}  // namespace
}  // namespace knap::report_test
