// Prefixes that come back from the disk give the ids of a cold run, and what is damaged is a miss.
#include "decode/prefix_disk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <tuple>

#include "base/faulty_fs.h"
#include "decode/answers.h"
#include "support/outcome.h"

namespace hearth::decode {
namespace {

namespace stdfs = std::filesystem;

struct Kind {
  graph::KvFormat kv = graph::KvFormat::bf16;
  int64_t window = 0;
};
std::unique_ptr<Engine> engine_of(const Kind& kind, int64_t n = 2) {
  EngineOptions options = rows(n);
  options.kv = kind.kv;
  return tiny_engine({.window = kind.window}, options);
}

PrefixDiskOptions in(const test::TempDir& dir, int64_t bytes_max = 1'000'000'000) {
  return {.dir = dir.path(), .bytes_max = bytes_max, .model = "tiny", .positions_min = 64};
}

std::vector<stdfs::path> files(const test::TempDir& dir) {
  std::vector<stdfs::path> list;
  for (const auto& entry : stdfs::recursive_directory_iterator(dir.path()))
    if (entry.is_regular_file()) list.push_back(entry.path());
  std::ranges::sort(list);
  return list;
}

// One answer from an engine and a scheduler of their own, as after a restart.
Answer restarted(const Kind& kind, const test::TempDir& dir, const Request& r, PrefixDisk::Counts* counts = nullptr) {
  const auto engine = engine_of(kind);
  Answer answer;
  {
    PrefixDisk disk(*engine, in(dir));
    {
      Scheduler scheduler(*engine, {.disk = &disk});
      scheduler.submit(r, into(answer));
      drain(scheduler);
    }
    disk.flush();
    if (counts) *counts = disk.counts();
  }
  expect_all_free(*engine);
  return answer;
}

TEST(PrefixDisk, a_restart_goes_on_where_it_was_for_every_kind_of_cache) {
  for (const Kind& kind : {Kind{graph::KvFormat::bf16, 0}, Kind{graph::KvFormat::f32, 0}, Kind{graph::KvFormat::q8, 0},
                           Kind{graph::KvFormat::q4, 0}, Kind{graph::KvFormat::bf16, 50}}) {
    const test::TempDir dir;
    const auto cold = engine_of(kind);
    const Answer first = restarted(kind, dir, asked(prompt_ids(150), 20));
    EXPECT_EQ(first.cached, 0);
    EXPECT_EQ(first.ids, solo(*cold, asked(prompt_ids(150), 20)).ids);
    EXPECT_EQ(files(dir).size(), 1u);
    Ids turn = prompt_ids(150);
    turn.insert(turn.end(), first.ids.begin(), first.ids.end());
    turn.push_back(7);
    PrefixDisk::Counts counts;
    const Answer second = restarted(kind, dir, asked(turn, 20), &counts);
    EXPECT_EQ(second.cached, 150 + 19);
    EXPECT_EQ(second.stats.cached_tokens, 150 + 19);
    EXPECT_EQ(second.ids, solo(*cold, asked(turn, 20)).ids);
    EXPECT_EQ(counts.restores, 1);
    EXPECT_EQ(counts.spills, 1);
    // The longer one serves what the shorter one did; with a window it may lack the pages that the shorter one sees.
    EXPECT_EQ(files(dir).size(), kind.window > 0 ? 2u : 1u);
    const Answer edited = restarted(kind, dir, asked(prompt_ids(150), 20));
    EXPECT_EQ(edited.ids, first.ids);
    EXPECT_EQ(edited.cached, 149) << "all but the last id of the prompt";
  }
}

TEST(PrefixDisk, spaces_models_and_kinds_are_apart) {
  const test::TempDir dir;
  Request r = asked(prompt_ids(150));
  r.space = "secret of a";
  restarted({}, dir, r);
  for (const stdfs::path& path : files(dir)) {
    EXPECT_EQ(path.string().find("secret"), std::string::npos);
    EXPECT_EQ(test::read_bytes(path).find("secret"), std::string::npos);
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_EQ(restarted({}, dir, r).cached, 149);
  r.space = "b";
  EXPECT_EQ(restarted({}, dir, r).cached, 0);
  r.space = "secret of a";
  EXPECT_EQ(restarted({graph::KvFormat::f32, 0}, dir, r).cached, 0);
  const auto engine = engine_of({});
  PrefixDiskOptions other = in(dir);
  other.model = "another";
  const PrefixDisk disk(*engine, other);
  EXPECT_EQ(disk.match_length(r.space, r.prompt, 149), 0);
}

// a file of another model, key or layout serves nobody, wherever somebody puts it.
TEST(PrefixDisk, a_file_in_another_ones_place_is_a_miss_and_goes) {
  const test::TempDir dir;
  Request r = asked(prompt_ids(150));
  r.space = "a";
  restarted({}, dir, r);
  const stdfs::path stored = files(dir).at(0);
  const auto engine = engine_of({});
  const auto found = [&](const std::string& model, const std::string& space) {
    PrefixDiskOptions options = in(dir);
    options.model = model;
    const PrefixDisk disk(*engine, options);
    return disk.match_length(space, r.prompt, 149);
  };
  ASSERT_EQ(found("tiny", "a"), 149);
  {
    PrefixDiskOptions options = in(dir);  // its folders
    options.model = "another";
    PrefixDisk disk(*engine, options);
    Scheduler scheduler(*engine, {.disk = &disk});
    Answer answer;
    Request theirs = asked(prompt_ids(150, 6));
    theirs.space = "b";
    scheduler.submit(theirs, into(answer));
    drain(scheduler);
    disk.flush();
  }
  const std::vector<stdfs::path> all = files(dir);
  ASSERT_EQ(all.size(), 2u);
  const stdfs::path theirs = all[0] == stored ? all[1] : all[0];
  for (const auto& [folder, model, space] :
       {std::tuple(theirs.parent_path(), "another", "b"),
        std::tuple(stored.parent_path().parent_path() / theirs.parent_path().filename(), "tiny", "b"),
        std::tuple(theirs.parent_path().parent_path() / stored.parent_path().filename(), "another", "a")}) {
    stdfs::create_directories(folder);
    const stdfs::path copy = folder / stored.filename();
    stdfs::copy_file(stored, copy);
    EXPECT_EQ(found(model, space), 0) << model << " " << space;
    EXPECT_FALSE(stdfs::exists(copy)) << model << " " << space;
  }
  EXPECT_EQ(found("tiny", "a"), 149) << "its own place";
}

// Before the start the heads are looked at; a page that is damaged shows when it is restored.
TEST(PrefixDisk, damage_is_a_miss_and_the_file_goes) {
  const Request r = asked(prompt_ids(150));
  const Answer want = solo(*engine_of({}), r);
  const auto damage = [&](const auto& edit) {
    const test::TempDir dir;
    restarted({}, dir, r);
    const stdfs::path path = files(dir).at(0);
    std::string bytes = test::read_bytes(path);
    edit(bytes);
    std::ofstream(path, std::ios::binary) << bytes;
    PrefixDisk::Counts counts;
    const Answer answer = restarted({}, dir, r, &counts);
    EXPECT_EQ(answer.cached, 0);
    EXPECT_EQ(answer.ids, want.ids);
    EXPECT_EQ(counts.failures, 1);
    EXPECT_EQ(counts.spills, 1) << "it is written anew";
    EXPECT_EQ(files(dir).size(), 1u);
    EXPECT_EQ(restarted({}, dir, r).cached, 149);
  };
  damage([](std::string& bytes) { bytes[0] = 'X'; });
  damage([](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  damage([](std::string& bytes) { bytes.clear(); });
  damage([](std::string& bytes) { bytes[bytes.size() - 1] ^= 1; });
  damage([](std::string& bytes) { bytes.replace(bytes.find("\"fingerprint\": \"") + 16, 1, "z"); });
}

TEST(PrefixDisk, a_file_that_vanishes_is_a_miss) {
  const test::TempDir dir;
  const Request r = asked(prompt_ids(150));
  restarted({}, dir, r);
  const auto engine = engine_of({});
  PrefixDisk disk(*engine, in(dir));
  EXPECT_EQ(disk.match_length("", r.prompt, 149), 149);
  stdfs::remove(files(dir).at(0));
  Answer answer;
  Scheduler scheduler(*engine, {.disk = &disk});
  scheduler.submit(r, into(answer));
  drain(scheduler);
  EXPECT_EQ(answer.cached, 0);
  EXPECT_EQ(answer.ids, solo(*engine, r).ids);
}

TEST(PrefixDisk, stays_below_its_cap_and_keeps_what_was_used) {
  const test::TempDir dir;
  const auto engine = engine_of({});
  int64_t one = 0;
  const auto keep = [&](PrefixDisk& disk, uint64_t seed) {
    const Ids ids = prompt_ids(100, seed);
    Sequence s = engine->cache().make();
    for (size_t at = 0; at < ids.size(); at += 20) {
      const StepInput input{&s, std::span(ids).subspan(at, 20), 1};
      engine->step({&input, 1});
    }
    disk.keep("", s);
    disk.flush();
    engine->cache().free(s);
  };
  {
    PrefixDisk disk(*engine, in(dir));
    keep(disk, 1);
    one = static_cast<int64_t>(stdfs::file_size(files(dir).at(0)));
    EXPECT_EQ(disk.counts().bytes, one);
  }
  PrefixDisk disk(*engine, in(dir, 2 * one + 100));
  EXPECT_EQ(disk.counts().entries, 1);
  keep(disk, 2);
  keep(disk, 1);  // is there
  EXPECT_EQ(disk.counts().spills, 1);
  ASSERT_NE(disk.restore("", prompt_ids(100, 1), 99), nullptr);  // used
  keep(disk, 3);
  EXPECT_EQ(files(dir).size(), 2u);
  EXPECT_EQ(disk.counts().entries, 2);
  EXPECT_LE(disk.counts().bytes, 2 * one + 100);
  EXPECT_EQ(disk.match_length("", prompt_ids(100, 1), 99), 99);
  EXPECT_EQ(disk.match_length("", prompt_ids(100, 2), 99), 0) << "used longest ago";
  EXPECT_EQ(disk.match_length("", prompt_ids(100, 3), 99), 99);
  const test::TempDir small;
  PrefixDisk none(*engine, in(small, one - 5000));
  keep(none, 1);
  EXPECT_TRUE(files(small).empty()) << "larger than the cap";
  expect_all_free(*engine);
}

TEST(PrefixDisk, pages_are_given_back_when_somebody_needs_them) {
  const test::TempDir dir;
  const auto engine = engine_of({});
  const Ids ids = prompt_ids(100);
  Sequence s = engine->cache().make();
  for (size_t at = 0; at < ids.size(); at += 20) {
    const StepInput input{&s, std::span(ids).subspan(at, 20), 1};
    engine->step({&input, 1});
  }
  PrefixDisk disk(*engine, in(dir));
  for (int round = 0; round < 50; ++round) {
    disk.keep("space " + std::to_string(round), s);
    disk.give_up_pages();
    for (int32_t page : s.pages[0]) ASSERT_EQ(engine->cache().references(0, page), 1);
  }
  engine->cache().free(s);
  expect_all_free(*engine);
  disk.flush();
  for (const stdfs::path& path : files(dir)) EXPECT_EQ(path.extension(), ".hkv") << "no half file is left";
}

// A small pool, a tree that gives up what it holds, cancels in the middle: the same answers, and no page is lost.
TEST(PrefixDisk, answers_are_the_same_whatever_is_restored) {
  const test::TempDir dir;
  const auto alone = tiny_engine({}, {.context = 256});
  EngineOptions options = rows(3);
  options.pool_positions = 512;
  Random random(4);
  for (int round = 0; round < 3; ++round) {
    const auto engine = tiny_engine({}, options);
    {
      PrefixDisk disk(*engine, in(dir, 3'000'000));
      std::vector<Answer> answers(12);
      std::vector<Request> requests;
      std::vector<RequestId> ids;
      Scheduler scheduler(*engine, {.prefix_bytes = round % 2 ? 0 : 200'000, .tokens_reserved = 1, .disk = &disk});
      for (size_t i = 0; i < answers.size(); ++i) {
        Request r = asked(prompt_ids(70 + static_cast<int64_t>(random.below(120)), random.below(4)), 30);
        r.sampler = {.temperature = 1, .seed = i};
        requests.push_back(r);
        ids.push_back(scheduler.submit(r, into(answers[i])));
        for (uint64_t n = random.below(8); n > 0; --n) scheduler.step();
        if (random.below(4) == 0) scheduler.cancel(ids[random.below(ids.size())]);
        if (random.below(4) == 0) scheduler.hold(ids[random.below(ids.size())]);
      }
      for (const RequestId id : ids) scheduler.release(id);
      drain(scheduler);
      for (size_t i = 0; i < answers.size(); ++i) {
        const Ids want = solo(*alone, requests[i]).ids;
        if (answers[i].end == "cancelled") {
          ASSERT_TRUE(std::equal(answers[i].ids.begin(), answers[i].ids.end(), want.begin()));
        } else {
          ASSERT_EQ(answers[i].ids, want) << round << " " << i;
        }
      }
      disk.flush();
    }
    expect_all_free(*engine);
  }
}

// A scheduler whose time passes when the test says so.
struct Demoting {
  explicit Demoting(const test::TempDir& dir, std::chrono::nanoseconds idle = std::chrono::seconds(300))
      : engine(engine_of({})),
        disk(std::make_unique<PrefixDisk>(*engine, in(dir))),
        scheduler(std::make_unique<Scheduler>(
            *engine, SchedulerOptions{.disk = disk.get(), .demote_idle = idle, .clock = &clock})) {}
  Answer ask(const Request& r) {
    Answer answer;
    scheduler->submit(r, into(answer));
    drain(*scheduler);
    disk->flush();
    return answer;
  }
  // As while nothing is asked for that long.
  void rest(std::chrono::nanoseconds time) {
    clock.advance(time);
    scheduler->demote();
    disk->flush();
  }
  int64_t entries() const { return scheduler->prefixes().entries(); }

  FakeClock clock;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<PrefixDisk> disk;
  std::unique_ptr<Scheduler> scheduler;
};

TEST(PrefixDisk, prefixes_that_nobody_uses_move_there_from_memory) {
  using namespace std::chrono_literals;
  const test::TempDir dir;
  Demoting d(dir);
  EXPECT_FALSE(d.scheduler->demote()) << "nothing is there to wait for";
  const Request r = asked(prompt_ids(150));
  const Answer first = d.ask(r);
  const int64_t kept = d.entries();
  EXPECT_GT(kept, 0);
  EXPECT_LE(d.scheduler->demote().value(), 10s);
  d.rest(299s);
  EXPECT_EQ(d.entries(), kept) << "not yet";
  EXPECT_EQ(d.ask(r).cached, 149) << "used again: the time begins anew";
  EXPECT_EQ(d.disk->counts().restores, 0);
  d.rest(299s);
  EXPECT_GT(d.entries(), 0);
  d.rest(10s);
  EXPECT_EQ(d.entries(), 0);
  EXPECT_EQ(d.scheduler->prefixes().bytes(), 0);
  EXPECT_EQ(files(dir).size(), 1u);
  expect_all_free(*d.engine);
  const Answer again = d.ask(r);
  EXPECT_EQ(again.ids, first.ids);
  EXPECT_EQ(again.cached, 149);
  EXPECT_EQ(d.disk->counts().restores, 1);
}

TEST(PrefixDisk, a_prefix_without_a_file_is_written_before_it_leaves_memory) {
  using namespace std::chrono_literals;
  const test::TempDir dir;
  Demoting d(dir);
  const Request r = asked(prompt_ids(150));
  const Answer first = d.ask(r);
  stdfs::remove(files(dir).at(0));  // as another process makes room
  d.rest(300s);
  EXPECT_GT(d.entries(), 0) << "there is no file yet";
  EXPECT_EQ(files(dir).size(), 1u) << "but it was written";
  d.rest(10s);
  EXPECT_EQ(d.entries(), 0);
  EXPECT_EQ(d.ask(r).ids, first.ids);
}

TEST(PrefixDisk, what_the_disk_does_not_take_stays_in_memory) {
  using namespace std::chrono_literals;
  const test::TempDir dir;
  Demoting d(dir), never(dir, 0s);
  d.ask(asked(prompt_ids(30), 10));  // shorter than positions_min
  d.rest(1h);
  EXPECT_GT(d.entries(), 0);
  never.ask(asked(prompt_ids(150)));
  never.rest(1h);
  EXPECT_FALSE(never.scheduler->demote());
  EXPECT_GT(never.entries(), 0);
}

// The engine never rests: the end of a request is where prefixes of others go.
TEST(PrefixDisk, prefixes_move_at_the_end_of_a_request) {
  using namespace std::chrono_literals;
  const test::TempDir dir;
  Demoting d(dir);
  d.ask(asked(prompt_ids(150, 1)));
  d.clock.advance(301s);
  Answer answer;
  d.scheduler->submit(asked(prompt_ids(30, 2), 60), into(answer));
  while (answer.ids.size() < 50) {
    ASSERT_TRUE(d.scheduler->step());
    ASSERT_EQ(d.disk->counts().spills, 1);
    ASSERT_EQ(d.scheduler->prefixes().match_length("", prompt_ids(150, 1), 150), 150) << "not in the token loop";
  }
  drain(*d.scheduler);
  EXPECT_EQ(d.scheduler->prefixes().match_length("", prompt_ids(150, 1), 150), 0);
  EXPECT_GT(d.entries(), 0) << "that of the one that ended";
}

// Many at once: some a look, all in the end, and no page is lost whatever is asked for meanwhile.
TEST(PrefixDisk, moving_changes_no_answer) {
  using namespace std::chrono_literals;
  const test::TempDir dir;
  const auto alone = tiny_engine({}, {.context = 256});
  Random random(9);
  {
    Demoting d(dir, 20s);
    for (int i = 0; i < 60; ++i) {
      const Request r = asked(prompt_ids(70 + static_cast<int64_t>(random.below(100)), random.below(12)), 20);
      ASSERT_EQ(d.ask(r).ids, solo(*alone, r).ids) << i;
      d.rest(std::chrono::seconds(random.below(15)));
    }
    EXPECT_GT(d.disk->counts().restores, 0);
    for (int i = 0; i < 20; ++i) d.rest(20s);
    EXPECT_EQ(d.entries(), 0);
    expect_all_free(*d.engine);
  }
}

// A disk whose writes stand still until it is let go.
class StuckFs : public test::FaultyFs {
 public:
  StuckFs() : FaultyFs(io::real_fs(), 0, "") {}
  std::unique_ptr<io::File> create(const io::Path& path, int mode) override {
    return std::make_unique<StuckFile>(*this, FaultyFs::create(path, mode));
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    stuck_ = false;
    changed_.notify_all();
  }

 private:
  class StuckFile : public io::File {
   public:
    StuckFile(StuckFs& fs, std::unique_ptr<io::File> file) : fs_(fs), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      std::unique_lock lock(fs_.mutex_);
      fs_.changed_.wait(lock, [&] { return !fs_.stuck_; });
      file_->write(bytes);
    }
    void sync() override { file_->sync(); }

   private:
    StuckFs& fs_;
    std::unique_ptr<io::File> file_;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stuck_ = true;
};

TEST(PrefixDisk, a_flush_that_takes_too_long_leaves_no_file) {
  const test::TempDir dir;
  const auto engine = engine_of({});
  StuckFs fs;
  PrefixDiskOptions options = in(dir);
  options.fs = &fs;
  {
    PrefixDisk disk(*engine, options);
    Answer answer;
    {
      Scheduler scheduler(*engine, {.disk = &disk});
      scheduler.submit(asked(prompt_ids(150)), into(answer));
      drain(scheduler);
    }
    EXPECT_FALSE(disk.flush_within(std::chrono::milliseconds(1)));
    expect_all_free(*engine);
    fs.let_go();
    EXPECT_TRUE(disk.flush_within(std::chrono::seconds(60)));
    EXPECT_EQ(disk.counts().entries, 0);
  }
  EXPECT_TRUE(files(dir).empty());
}

TEST(PrefixDisk, what_a_killed_process_left_goes_and_what_a_living_one_writes_stays) {
  const test::TempDir dir;
  restarted({}, dir, asked(prompt_ids(150)));
  const stdfs::path stored = files(dir).at(0);
  const auto leave = [&](const stdfs::path& folder) {
    stdfs::create_directories(folder);
    const stdfs::path path = folder / ("." + stored.filename().string() + ".4711-0.tmp");
    std::ofstream(path) << "half";
    return path;
  };
  const auto engine = engine_of({});
  const stdfs::path own = leave(stored.parent_path()), of_another = leave(dir.path() / "another model" / "space");
  {
    PrefixDisk disk(*engine, in(dir));
    EXPECT_FALSE(stdfs::exists(own));
    EXPECT_FALSE(stdfs::exists(of_another)) << "nobody uses that model";
    EXPECT_TRUE(stdfs::exists(stored));
    const stdfs::path being_written = leave(stored.parent_path());
    const PrefixDisk second(*engine, in(dir));
    PrefixDiskOptions other = in(dir);
    other.model = "other";
    const PrefixDisk third(*engine, other);
    EXPECT_TRUE(stdfs::exists(being_written)) << "the first one is still there";
  }
  const PrefixDisk later(*engine, in(dir));
  EXPECT_EQ(files(dir), std::vector{stored});
}

TEST(PrefixDisk, refuses_by_name) {
  const test::TempDir dir;
  const auto engine = engine_of({});
  const auto says = [&](auto&& edit) {
    PrefixDiskOptions o = in(dir);
    edit(o);
    return test::outcome([&] { PrefixDisk(*engine, o); });
  };
  EXPECT_EQ(says([](PrefixDiskOptions& o) { o.dir.clear(); }), "invalid_argument: the disk cache has no directory");
  EXPECT_EQ(says([](PrefixDiskOptions& o) { o.model.clear(); }),
            "invalid_argument: the disk cache is not told which model it is for");
  EXPECT_EQ(says([](PrefixDiskOptions& o) { o.bytes_max = -1; }),
            "invalid_argument: disk-cache-max is -1, expected 0 or more");
}

}  // namespace
}  // namespace hearth::decode
