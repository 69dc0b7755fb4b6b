// What no golden file can show: sizes, speed of hostile input, positions, and generated fleets.

#include "spec/cluster_file.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "base/describe.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "spec/verbs.hpp"

namespace zed::spec {
namespace {

std::string said(std::string_view text) {
  return render(check(text).diagnostics, "f.exs", text);
}

TEST(ClusterFile, IsAtMostFourMebibytes) {
  std::string file = "deploy :fleet do\nend\n";
  file += "#" + std::string(largest_file - file.size() - 1, 'x');
  EXPECT_TRUE(check(file).cluster);
  EXPECT_TRUE(format(file).text);
  file += "x";
  EXPECT_FALSE(check(file).cluster);
  EXPECT_FALSE(format(file).text);
  EXPECT_EQ(check(file).diagnostics.at(0).message,
            "the file has 4.00 MiB; a cluster file has at most 4.00 MiB");
}

/// Files whose naive handling is quadratic or recursive without end.
TEST(ClusterFile, HostileFilesAreRefusedQuickly) {
  auto filled = [](std::string_view head, std::string_view piece) {
    std::string file(head);
    while (file.size() + piece.size() <= largest_file / 32)
      file += piece;
    return file;
  };
  for (const auto& file :
       {filled("", "["), filled("", "a do "), filled("", "end "), filled("", "\""),
        filled("", "\"\n"), filled("deploy :a, do: ", "("), filled("", "node :a;"),
        filled("deploy :a do ", "node :a do end;"), filled("deploy :a do\n", "nod :a\n"),
        filled("a ", "1,"), filled("", "fn "), filled("", "\"#{"), filled("", "\xFF"),
        filled("", "é"), filled("", "\"\"\"\n"), filled("", "a\n"), filled("a [", "x\n"),
        filled("deploy :a do job :b do after [", ":x,"), filled("", "'")}) {
    EXPECT_FALSE(check(file).cluster);
    EXPECT_LE(check(file).diagnostics.size(), most_diagnostics + 1) << file.substr(0, 30);
    EXPECT_LT(said(file).size(), std::size_t{200'000}) << file.substr(0, 30);
    format(file);
  }
}

TEST(ClusterFile, HasAtMostAMillionWords) {
  std::string file = "node ";
  while (file.size() + 2 <= largest_file)
    file += "1,";
  Checked checked = check(file);
  ASSERT_EQ(checked.diagnostics.size(), 1U);
  EXPECT_EQ(checked.diagnostics[0].message, "the file has more than a million words and signs");
}

TEST(ClusterFile, ALongChainOfJobsIsNoRecursion) {
  std::string file = "deploy :fleet do\n";
  for (int i = 0; i < 5'000; ++i)
    file +=
        "  job :j" + std::to_string(i) + " do\n    after :j" + std::to_string(i + 1) + "\n  end\n";
  EXPECT_TRUE(check(file + "  job :j5000\nend\n").cluster);
  Checked circle = check(file + "  job :j5000 do\n    after :j0\n  end\nend\n");
  ASSERT_EQ(circle.diagnostics.size(), 1U);
  EXPECT_EQ(circle.diagnostics[0].message, "job `j0` would wait for itself: j0 -> … -> j0");
}

TEST(ClusterFile, DiagnosticsAreDataToo) {
  Checked checked = check("deploy :fleet do\n  nod :server\nend\n");
  EXPECT_EQ(
      to_json(to_value(checked.diagnostics)),
      R"([{"severity":"error","line":2,"column":3,"message":"unknown verb `nod` in a `deploy` )"
      R"(block","hint":"did you mean `node`?"}])");
}

TEST(ClusterFile, WarningsPass) {
  Checked checked = check("deploy :fleet do\n  job :a do\n    model :none\n  end\nend\n");
  EXPECT_TRUE(checked.cluster);
  ASSERT_EQ(checked.diagnostics.size(), 1U);
  EXPECT_EQ(checked.diagnostics[0].severity, Severity::warning);
  EXPECT_FALSE(has_errors(checked.diagnostics));
}

TEST(ClusterFile, DefaultsAreThoseOfTheLanguage) {
  Cluster cluster = check("deploy :f do\n  job :train_1\n  model :m\nend\n").cluster.value();
  const Job& job = cluster.jobs.at(0);
  EXPECT_TRUE(job.id.is_nil());
  EXPECT_EQ(job.dataset.str(), "jobs/train_1");
  EXPECT_EQ(job.retries, 3);
  EXPECT_EQ(job.copies, 1);
  EXPECT_EQ(job.priority, 0);
  EXPECT_TRUE(job.argv.empty());
  EXPECT_EQ(cluster.models.at(0).dataset.str(), "models/m");
}

/// The reference page has every verb, and an example that is accepted as it stands there.
TEST(Verbs, AreDocumented) {
  std::ifstream in(std::string(ZED_SOURCE_DIR) + "/docs/cluster-file.md");
  std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (const Verb& verb : all_verbs())
    EXPECT_NE(page.find("`" + std::string(verb.name)), std::string::npos) << verb.name;
  std::size_t open = page.find("```elixir\n");
  int examples = 0;
  while (open != std::string::npos) {
    std::size_t begin = open + 10;
    std::size_t end = page.find("```", begin);
    std::string example = page.substr(begin, end - begin);
    EXPECT_TRUE(check(example).cluster) << said(example);
    EXPECT_EQ(format(example).text, example);
    ++examples;
    open = page.find("```elixir\n", end);
  }
  EXPECT_GE(examples, 2);
}

TEST(Verbs, NotBuiltOnesExistInTheTable) {
  for (const NotBuilt& entry : verbs_not_built)
    EXPECT_NE(find_verb(entry.name, entry.place), nullptr) << entry.name;
}

// --- generated fleets, written in a random style

/// Writes statements, choosing at random between the forms that mean the same.
class Scribe {
public:
  std::string text;

  void call(const std::string& verb, const std::vector<std::string>& arguments) {
    blank();
    text += std::string(depth_ * 2, ' ') + verb;
    write_arguments(arguments);
    end_line();
  }
  void open(const std::string& verb, const std::vector<std::string>& arguments) {
    blank();
    text += std::string(depth_ * 2, ' ') + verb;
    write_arguments(arguments);
    text += " do";
    end_line();
    ++depth_;
  }
  void close() {
    --depth_;
    text += "end";
    end_line();
  }

private:
  static bool toss() { return *rc::gen::inRange(0, 4) == 0; }
  void blank() {
    if (toss()) text += "\n";
    if (toss()) text += "# comment `do` \"\n";
  }
  void end_line() { text += toss() ? "  # behind\r\n" : toss() ? " ;\n" : "\n"; }
  void write_arguments(const std::vector<std::string>& arguments) {
    bool parentheses = toss();
    text += parentheses ? "(" : " ";
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (i > 0) text += toss() ? ",\n # between\n" : toss() ? ",   " : ", ";
      text += arguments[i];
    }
    if (parentheses) text += ")";
  }
  std::size_t depth_ = 0;
};

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\' || c == '#') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string listed(const std::vector<std::string>& items) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i)
    out += (i > 0 ? ", " : "") + in_quotes(items[i]);
  return out + "]";
}

rc::Gen<std::string> any_name() {
  return rc::gen::element<std::string>("a", "b2", "train-1", "Big_One", "x.y", "end", "do", "node");
}
rc::Gen<std::string> any_text() {
  return rc::gen::element<std::string>("x", "a \"b\"", "#{no}", "back\\slash", "ünï", "two\nlines",
                                       "end", "# no comment");
}

void write_node(Scribe& scribe, Cluster& cluster, const std::string& name) {
  DeclaredNode node;
  node.name = *NodeName::parse(name);
  std::vector<std::string> head{":\"" + name + "\""};
  if (*rc::gen::arbitrary<bool>()) {
    node.pool = "nvme";
    head.emplace_back("pool: \"nvme\"");
  }
  if (*rc::gen::arbitrary<bool>()) {
    node.store = StoreKind::dir;
    head.emplace_back("\"store\": :dir");
  }
  scribe.open("node", head);
  if (*rc::gen::arbitrary<bool>()) {
    std::int64_t vram = *rc::gen::inRange(1, 100);
    node.gpus.push_back({"RTX 4090", MemorySize{MemorySize::Kind::nominal_gb, vram}, false, 2});
    scribe.call("gpu", {"\"RTX 4090\"", "count: 2", "vram: " + std::to_string(vram)});
  }
  scribe.close();
  cluster.nodes.push_back(node);
}

void write_job(Scribe& scribe, Cluster& cluster, const std::string& name) {
  Job job;
  job.name = JobName(name);
  job.dataset = *DatasetName::parse("jobs/" + name);
  scribe.open("job", {":\"" + name + "\""});
  if (*rc::gen::arbitrary<bool>()) {
    job.argv = *rc::gen::resize(
        3, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(any_text())));
    scribe.call("run", {listed(job.argv)});
  }
  job.priority = *rc::gen::inRange(-100, 101);
  scribe.call("priority", {std::to_string(job.priority)});
  if (*rc::gen::arbitrary<bool>()) {
    job.env = {{"A", *any_text()}, {"_b", ""}};
    scribe.call("env", {"A: " + in_quotes(job.env["A"]), "\"_b\": \"\""});
  }
  std::int64_t gib = *rc::gen::inRange(1, 500);
  if (*rc::gen::arbitrary<bool>()) {
    job.requirement.memory = MemorySize{MemorySize::Kind::exact, gib << 30};
    scribe.call("requires", {"memory: \"" + std::to_string(gib) + " GiB\""});
  }
  scribe.close();
  cluster.jobs.push_back(job);
}

RC_GTEST_PROP(ClusterFile, WhatIsWrittenIsWhatIsRead, ()) {
  Cluster cluster;
  cluster.name = "fleet";
  Scribe scribe;
  scribe.open("deploy", {":fleet"});
  auto machines =
      *rc::gen::resize(3, rc::gen::container<std::set<std::string>>(rc::gen::element<std::string>(
                              "alpha", "beta", "gamma-2", "d.lan", "e5", "f", "g")));
  for (const std::string& name : machines)
    write_node(scribe, cluster, name);
  auto names = *rc::gen::resize(3, rc::gen::container<std::set<std::string>>(any_name()));
  for (const std::string& name : names)
    write_job(scribe, cluster, name);
  scribe.close();
  std::sort(cluster.nodes.begin(), cluster.nodes.end(),
            [](const DeclaredNode& a, const DeclaredNode& b) { return a.name < b.name; });

  Checked checked = check(scribe.text);
  RC_LOG() << scribe.text << render(checked.diagnostics, "f.exs", scribe.text);
  RC_ASSERT(checked.cluster.has_value());
  RC_ASSERT(*checked.cluster == cluster);
  Formatted formatted = format(scribe.text);
  RC_ASSERT(formatted.text.has_value());
  RC_LOG() << *formatted.text;
  RC_ASSERT(check(*formatted.text).cluster == cluster);
  RC_ASSERT(format(*formatted.text).text == formatted.text);
}

RC_GTEST_PROP(ClusterFile, AnyTextIsReadOrRefused, ()) {
  auto piece = rc::gen::element<std::string>(
      "deploy", " :a", " do", "\n", "end", "node", "job", "(", ")", "[", "]", ",", " \"x\"", "\"",
      "# c", ";", " k: ", "do: ", "after", " 1", "-2", "\"\"\"", "\\", "#{", "}", " fn ", "@m", "=",
      " true", "\xC3", "é", "\0", "'", "~s", "Zed.DSL", "defmodule", " ");
  std::string text;
  for (const std::string& part : *rc::gen::container<std::vector<std::string>>(piece))
    text += part;
  Checked checked = check(text);
  RC_ASSERT(checked.cluster.has_value() != has_errors(checked.diagnostics));
  render(checked.diagnostics, "f.exs", text);
  Formatted formatted = format(text);
  RC_ASSERT(formatted.text.has_value() != has_errors(formatted.diagnostics));
  if (formatted.text) RC_ASSERT(format(*formatted.text).text == formatted.text);
}

}  // namespace
}  // namespace zed::spec
