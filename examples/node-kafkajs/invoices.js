import { Kafka, logLevel } from "kafkajs";

const PRICES = { coffee: 3, tea: 2 };

/** Consumes orders and produces invoices. Returns a function that stops the service. */
export async function writeInvoices(broker) {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  const consumer = kafka.consumer({ groupId: "invoices", maxWaitTimeInMs: 500 });
  await producer.connect();
  await consumer.connect();
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ message }) => {
      const total = PRICES[message.value.toString()];
      const messages = [{ key: message.key, value: total.toString() }];
      await producer.send({ topic: "invoices", messages });
    },
  });
  return async () => {
    await consumer.disconnect();
    await producer.disconnect();
  };
}
