// Reads COUNT records of TOPIC as a member of GROUP, commits, and prints their values as JSON. Arguments by environment.
const { Kafka, logLevel } = require("kafkajs");

const { BOOTSTRAP, TOPIC, GROUP, COUNT, USERNAME, PASSWORD } = process.env;
const sasl = USERNAME ? { mechanism: "plain", username: USERNAME, password: PASSWORD } : undefined;

async function main() {
  const kafka = new Kafka({ clientId: "kafkajs-test", brokers: [BOOTSTRAP], sasl, ssl: false, logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId: GROUP });
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  const values = [];
  await new Promise((resolve, reject) => {
    consumer
      .run({
        eachMessage: async ({ message }) => {
          values.push(message.value.toString());
          if (values.length === Number(COUNT)) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  const admin = kafka.admin();
  await admin.connect();
  const committed = await admin.fetchOffsets({ groupId: GROUP, topics: [TOPIC] });
  await admin.disconnect();
  console.log(JSON.stringify({ values, committed: committed[0].partitions }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
