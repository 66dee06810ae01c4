import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { writeInvoices } from "./invoices.js";
import { startOdradek } from "./odradek.js";

let odradek;
before(async () => {
  odradek = await startOdradek();
});
after(() => odradek.stop());

test("an order becomes an invoice", async () => {
  const kafka = new Kafka({ brokers: [odradek.address], logLevel: logLevel.ERROR });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ key: "table-7", value: "coffee" }] });
  await producer.disconnect();

  const stop = await writeInvoices(odradek.address);
  const consumer = kafka.consumer({ groupId: "test", maxWaitTimeInMs: 500 });
  await consumer.connect();
  await consumer.subscribe({ topic: "invoices", fromBeginning: true });
  const invoice = await new Promise((resolve) => {
    consumer.run({ eachMessage: async ({ message }) => resolve(message) });
  });
  assert.equal(invoice.key.toString(), "table-7");
  assert.equal(invoice.value.toString(), "3");
  await consumer.disconnect();
  await stop();
});
