// kafkajs, unmodified: plays the named features and prints one JSON line for each (see ../matrix.py).
// Arguments: bootstrap, prefix of the topics' names, features with commas between. Topics are there already.
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { Kafka, logLevel, AssignerProtocol, CompressionTypes, CompressionCodecs } = require("kafkajs");
const snappy = require("kafkajs-snappy");
const lz4 = require("lz4-napi");
const zstd = require("@bokuweb/zstd-wasm");

const PATIENCE_MS = 40_000;
const FEATURES_AT_ONCE = 4;
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD };

// kafkajs brings gzip; the others are plugged in, as its documentation tells.
CompressionCodecs[CompressionTypes.Snappy] = snappy;
CompressionCodecs[CompressionTypes.LZ4] = () => ({ compress: (encoder) => lz4.compressFrame(encoder.buffer), decompress: (buffer) => lz4.decompressFrame(buffer) });
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from(zstd.compress(encoder.buffer, 3)),
  decompress: async (buffer) => Buffer.from(zstd.decompress(buffer)),
});

const [bootstrap, prefix, names] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "kafkajs-matrix", brokers: bootstrap.split(","), logLevel: logLevel.NOTHING, retry: { initialRetryTime: 100 } });

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const many = (word, count, rest = {}) => Array.from({ length: count }, (_, i) => ({ value: `${word}-${i}`, partition: 0, ...rest }));

function expectEqual(got, wanted, what) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
}

async function until(what, holds) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`did not happen: ${what}`);
    await sleep(20);
  }
}

async function withProducer(settings, work) {
  const producer = kafka.producer(settings);
  await producer.connect();
  try {
    return await work(producer);
  } finally {
    await producer.disconnect();
  }
}

async function withAdmin(work) {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

// A member of the group named as its topic, which keeps what it read.
class Member {
  constructor(topics, { group, settings = {}, fromBeginning = true, run = {}, onJoin } = {}) {
    this.read = [];
    this.owned = [];
    this.joins = 0;
    this.rebalances = 0;
    this.consumer = kafka.consumer({ groupId: group ?? topics[0], maxWaitTimeInMs: 100, heartbeatInterval: 300, ...settings });
    this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
      this.joins += 1;
      this.owned = Object.values(payload.memberAssignment).flat();
      if (onJoin) onJoin(this.consumer, payload);
    });
    this.consumer.on(this.consumer.events.REBALANCING, () => (this.rebalances += 1));
    this.started = this.start(topics, fromBeginning, run);
  }

  async start(topics, fromBeginning, run) {
    await this.consumer.connect();
    await this.consumer.subscribe({ topics, fromBeginning });
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ topic, partition, message }) => {
        this.read.push({ topic, partition, offset: Number(message.offset), value: message.value.toString(), headers: message.headers });
      },
      ...run,
    });
  }

  async close() {
    await this.started;
    await this.consumer.disconnect();
  }
}

async function withMember(topics, options, work) {
  const member = new Member(topics, options);
  try {
    await member.started;
    return await work(member);
  } finally {
    await member.close();
  }
}

const reads = (member, count) => until(`${count} records`, () => member.read.length >= count);

// -- producing

const acks = (setting) => async (topic) =>
  withProducer({}, async (producer) => {
    const offsets = [];
    for (const message of many("value", 10)) {
      const [stored] = await producer.send({ topic, acks: setting, messages: [message] });
      if (setting !== 0) offsets.push(stored.baseOffset);
    }
    return setting === 0 ? {} : { offsets };
  });

async function sendForget(topic) {
  const producer = kafka.producer();
  await producer.connect();
  const sent = producer.send({ topic, messages: many("value", 10) });
  await sent; // nobody looks at the answer; the process must not end before it is out
  await producer.disconnect();
}

async function sendCallback(topic) {
  await withProducer({}, async (producer) => {
    let acked = 0;
    await producer.send({ topic, messages: many("value", 10) }).then((stored) => (acked = stored.length));
    expectEqual(acked, 1, "answers in the callback");
  });
}

const codec = (name) => async (topic) => {
  await withProducer({}, (producer) => producer.send({ topic, compression: CODECS[name], messages: many("value", 50) }));
  await withMember([topic], {}, async (member) => {
    await reads(member, 50);
    expectEqual(member.read.map((each) => each.value), many("value", 50).map((each) => each.value), "what was read");
  });
};

async function headers(topic) {
  const given = { trace: ["1", "2"], empty: "" };
  await withProducer({}, (producer) => producer.send({ topic, messages: [{ value: "value-0", partition: 0, headers: given }] }));
  return withMember([topic], {}, async (member) => {
    await reads(member, 1);
    return { headers: Object.entries(member.read[0].headers).flatMap(([key, values]) => [values].flat().map((value) => `${key}=${value}`)) };
  });
}

async function idempotent(topic) {
  await withProducer({ idempotent: true, maxInFlightRequests: 1 }, async (producer) => {
    await producer.send({ topic, messages: many("value", 20).slice(0, 10) });
    await producer.send({ topic, messages: many("value", 20).slice(10) });
  });
}

// -- transactions

const transactional = (topic) => ({ transactionalId: topic, idempotent: true, maxInFlightRequests: 1 });

async function txnCommit(topic) {
  await withProducer(transactional(topic), async (producer) => {
    const transaction = await producer.transaction();
    for (const partition of [0, 1]) await transaction.send({ topic, messages: many("kept", 5, { partition }) });
    await transaction.commit();
  });
}

async function txnAbort(topic) {
  await withProducer(transactional(topic), async (producer) => {
    const dropped = await producer.transaction();
    await dropped.send({ topic, messages: many("dropped", 5) });
    await dropped.abort();
    const kept = await producer.transaction();
    await kept.send({ topic, messages: many("kept", 5) });
    await kept.commit();
  });
}

async function txnFencing(topic) {
  return withProducer(transactional(topic), async (old) => {
    const dropped = await old.transaction();
    await dropped.send({ topic, messages: many("dropped", 5) });
    await withProducer(transactional(topic), async (current) => {
      const kept = await current.transaction();
      await kept.send({ topic, messages: many("kept", 5) });
      await kept.commit();
    });
    try {
      await dropped.commit();
    } catch (error) {
      return { error: error.type ?? error.name };
    }
    throw new Error("the old producer could commit");
  });
}

async function txnOffsets(topic) {
  await withMember([topic], {}, async (member) => {
    await reads(member, 10);
    await withProducer(transactional(topic), async (producer) => {
      const transaction = await producer.transaction();
      await transaction.send({ topic: `${topic}-out`, messages: member.read.map((each) => ({ value: `seen-${each.value}`, partition: 0 })) });
      await transaction.sendOffsets({ consumerGroupId: topic, topics: [{ topic, partitions: [{ partition: 0, offset: "10" }] }] });
      await transaction.commit();
    });
  });
}

async function readCommitted(topic) {
  for (const [readUncommitted, count] of [[false, 10], [true, 15]]) {
    await withMember([topic], { group: `${topic}-${count}`, settings: { readUncommitted } }, async (member) => {
      await reads(member, count);
      if (!readUncommitted && !member.read.every((each) => each.value.startsWith("kept"))) throw new Error("an aborted record was shown");
    });
  }
}

// -- groups

const distinct = (members) => new Set(members.flatMap((each) => each.read.map((one) => `${one.partition}/${one.offset}`))).size;

async function groupClassic(topic) {
  const members = [1, 2, 3].map(() => new Member([topic]));
  try {
    await until("two partitions for each", () => members.every((each) => each.owned.length === 2));
    await until("all records", () => distinct(members) === 60);
    await members[0].consumer.commitOffsets([{ topic, partition: members[0].owned[0], offset: "1" }]); // so that the group is still there
  } finally {
    await Promise.all(members.map((each) => each.close()));
  }
}

// To each member what it wishes for, uneven as no client's own assigner would do it.
const wishing = (wish) => () => ({
  name: "wish",
  version: 0,
  protocol: ({ topics }) => ({ name: "wish", metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics, userData: Buffer.from(wish) }) }),
  assign: async ({ members }) =>
    members.map(({ memberId, memberMetadata }) => {
      const { topics, userData } = AssignerProtocol.MemberMetadata.decode(memberMetadata);
      const assignment = { [topics[0]]: userData.toString().split(",").map(Number) };
      return { memberId, memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 0, assignment }) };
    }),
});

async function assignorCustom(topic) {
  const wishes = ["0,5", "1,3,4", "2"];
  const members = wishes.map((wish) => new Member([topic], { settings: { partitionAssigners: [wishing(wish)] } }));
  try {
    await until("to each what it wished for", () => members.every((each, i) => [...each.owned].sort().join(",") === wishes[i]));
    await until("all records", () => distinct(members) === 60);
    await members[0].consumer.commitOffsets([{ topic, partition: 0, offset: "1" }]); // so that the group is still there
  } finally {
    await Promise.all(members.map((each) => each.close()));
  }
}

async function rebalanceListener(topic) {
  await withMember([topic], {}, async (first) => {
    await until("all four", () => first.owned.length === 4);
    await withMember([topic], {}, async (second) => {
      await until("two for each", () => first.owned.length === 2 && second.owned.length === 2);
    });
    if (first.rebalances < 1 || first.joins < 2) throw new Error(`heard of ${first.rebalances} rebalances, ${first.joins} joins`);
  });
}

// -- reading

async function regex(topic) {
  await withMember([new RegExp(`^${topic}-[ab]$`)], { group: topic }, async (member) => {
    await reads(member, 10);
    expectEqual([...new Set(member.read.map((each) => each.topic))].sort(), [`${topic}-a`, `${topic}-b`], "topics read");
  });
}

async function pauseResume(topic) {
  const second = [{ topic, partitions: [1] }];
  await withMember([topic], { onJoin: (consumer) => consumer.pause(second) }, async (member) => {
    await reads(member, 5);
    await sleep(300);
    expectEqual([...new Set(member.read.map((each) => each.partition))], [0], "partitions read while 1 was paused");
    member.consumer.resume(second);
    await reads(member, 10);
  });
}

async function seek(topic) {
  await withMember([topic], { onJoin: (consumer) => consumer.seek({ topic, partition: 0, offset: "7" }) }, async (member) => {
    await until("the last record", () => member.read.some((each) => each.offset === 9));
    expectEqual(member.read.map((each) => each.offset), [7, 8, 9], "after seek(7)");
    member.consumer.seek({ topic, partition: 0, offset: "0" });
    await until("the first record", () => member.read.some((each) => each.offset === 0));
  });
}

async function outsideStore(topic) {
  const store = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "offset-")), "offset");
  await withMember([topic], {}, async (member) => {
    await reads(member, 5);
    fs.writeFileSync(store, String(member.read[4].offset + 1));
  });
  const offset = fs.readFileSync(store, "utf8");
  await withMember([topic], { onJoin: (consumer) => consumer.seek({ topic, partition: 0, offset }) }, async (member) => {
    await reads(member, 5);
    expectEqual(member.read[0].offset, Number(offset), "the first offset after the restart");
  });
}

// -- commits

async function commitAuto(topic) {
  await withMember([topic], { run: { autoCommit: true, autoCommitInterval: 100 } }, (member) => reads(member, 10));
}

async function commitSync(topic) {
  await withMember([topic], {}, async (member) => {
    await reads(member, 10);
    await member.consumer.commitOffsets([{ topic, partition: 0, offset: "4", metadata: "note" }]);
  });
}

async function commitAsync(topic) {
  await withMember([topic], {}, async (member) => {
    await reads(member, 10);
    let done = false;
    member.consumer.commitOffsets([{ topic, partition: 0, offset: "6" }]).then(() => (done = true));
    await until("the promise", () => done);
  });
}

// -- where a reader without an offset begins

const resetEarliest = (start) => async (topic) =>
  withMember([topic], {}, async (member) => {
    await reads(member, 5);
    expectEqual(member.read[0].offset, start, "the first offset");
  });

async function resetLatest(topic) {
  await withMember([topic], { fromBeginning: false }, (member) =>
    withProducer({}, async (producer) => {
      await until("a record that is written later", async () => {
        await producer.send({ topic, messages: [{ value: "later", partition: 0 }] });
        await sleep(200);
        return member.read.length > 0;
      });
      expectEqual(member.read[0].value, "later", "the first record");
    }),
  );
}

// -- admin

async function adminCreate(topic) {
  await withAdmin(async (admin) => {
    const configEntries = [{ name: "retention.ms", value: "3600000" }];
    const topics = [{ topic: `${topic}-made`, numPartitions: 2, configEntries }, { topic: `${topic}-gone`, numPartitions: 1 }];
    await admin.createTopics({ topics, waitForLeaders: true });
    await admin.createPartitions({ topicPartitions: [{ topic: `${topic}-made`, count: 3 }] });
    await admin.deleteTopics({ topics: [`${topic}-gone`] });
  });
}

async function adminDescribe(topic) {
  return withAdmin(async (admin) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    expectEqual(topics[0].partitions.length, 2, "partitions");
    if (!(await admin.listTopics()).includes(topic)) throw new Error("the topic is not listed");
    return { cluster: (await admin.describeCluster()).clusterId };
  });
}

async function adminConfigs(topic) {
  await withAdmin(async (admin) => {
    const resource = { type: 2, name: topic };
    await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: [{ name: "retention.ms", value: "1234567" }] }] });
    await until("the new value, which any broker may be asked for", async () => {
      const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] });
      return resources[0].configEntries.find((each) => each.configName === "retention.ms").configValue === "1234567";
    });
  });
}

async function adminDeleteRecords(topic) {
  await withAdmin(async (admin) => {
    await admin.fetchTopicOffsets(topic); // else it knows no leader and gives up
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "4" }] });
  });
}

async function adminGroups(topic) {
  await withAdmin(async (admin) => {
    const { groups } = await admin.listGroups();
    if (!groups.some((each) => each.groupId === topic)) throw new Error("the group is not listed");
    expectEqual((await admin.describeGroups([topic])).groups[0].state, "Empty", "the group's state");
  });
}

const adminDeleteGroup = (topic) => withAdmin((admin) => admin.deleteGroups([topic]));

async function adminOffsets(topic) {
  await withAdmin(async (admin) => {
    const [shown] = await admin.fetchOffsets({ groupId: topic, topics: [topic] });
    expectEqual(shown.partitions[0].offset, "7", "the committed offset");
    expectEqual((await admin.fetchTopicOffsets(topic))[0].offset, "10", "the end offset");
  });
}

const adminAlterOffsets = (topic) => withAdmin((admin) => admin.setOffsets({ groupId: topic, topic, partitions: [{ partition: 0, offset: "3" }] }));

const FEATURES = {
  "acks-0": acks(0),
  "acks-1": acks(1),
  "acks-all": acks(-1),
  "send-forget": sendForget,
  "send-sync": acks(-1),
  "send-callback": sendCallback,
  ...Object.fromEntries(Object.keys(CODECS).map((name) => [`codec-${name}`, codec(name)])),
  headers,
  idempotent,
  "txn-commit": txnCommit,
  "txn-abort": txnAbort,
  "txn-fencing": txnFencing,
  "txn-offsets": txnOffsets,
  "read-committed": readCommitted,
  "group-classic": groupClassic,
  "assignor-custom": assignorCustom,
  "rebalance-listener": rebalanceListener,
  regex,
  "pause-resume": pauseResume,
  seek,
  "outside-store": outsideStore,
  "commit-auto": commitAuto,
  "commit-sync": commitSync,
  "commit-async": commitAsync,
  "reset-earliest-new": resetEarliest(0),
  "reset-earliest-expired": resetEarliest(0),
  "reset-earliest-trimmed": resetEarliest(5),
  "reset-latest-new": resetLatest,
  "reset-latest-expired": resetLatest,
  "reset-latest-trimmed": resetLatest,
  "admin-create": adminCreate,
  "admin-describe": adminDescribe,
  "admin-configs": adminConfigs,
  "admin-delete-records": adminDeleteRecords,
  "admin-groups": adminGroups,
  "admin-delete-group": adminDeleteGroup,
  "admin-offsets": adminOffsets,
  "admin-alter-offsets": adminAlterOffsets,
};

async function play(name) {
  const started = Date.now();
  const line = { feature: name };
  try {
    const said = await FEATURES[name](`${prefix}-${name}`);
    Object.assign(line, { ok: true, said: said ?? {} });
  } catch (error) {
    Object.assign(line, { ok: false, why: String(error), trace: error.stack });
  }
  console.log(JSON.stringify({ ...line, ms: Date.now() - started }));
}

async function main() {
  await zstd.init();
  const waiting = names.split(",");
  const worker = async () => {
    while (waiting.length) await play(waiting.shift());
  };
  await Promise.all(Array.from({ length: FEATURES_AT_ONCE }, worker));
  process.exit(0); // a connection that hangs must not keep the process
}

main();
