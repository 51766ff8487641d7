// Sends COUNT records to TOPIC and prints the base offsets as JSON. Arguments by environment, one job, no options.
const { Kafka, logLevel } = require("kafkajs");

const { BOOTSTRAP, TOPIC, COUNT, USERNAME, PASSWORD } = process.env;
const sasl = USERNAME ? { mechanism: "plain", username: USERNAME, password: PASSWORD } : undefined;

async function main() {
  const kafka = new Kafka({ clientId: "kafkajs-test", brokers: [BOOTSTRAP], sasl, ssl: false, logLevel: logLevel.ERROR });
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: 1 }] });
  const producer = kafka.producer();
  await producer.connect();
  const messages = Array.from({ length: Number(COUNT) }, (_, i) => ({ key: `k${i}`, value: `kafkajs-${i}`, headers: { n: String(i) } }));
  const sent = await producer.send({ topic: TOPIC, messages });
  const offsets = await admin.fetchTopicOffsets(TOPIC);
  await producer.disconnect();
  await admin.disconnect();
  console.log(JSON.stringify({ sent, offsets }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
