// A producer or a consumer of KafkaJS, which does what lines say while nodes of a cluster fail. Each
// line is answered with one: "ok" and words, or "error" and why. FailoverClient.java has the same.
const { Kafka, logLevel } = require('kafkajs')
const readline = require('node:readline')

const LIMIT_RETRIES = { retries: 100, maxRetryTime: 1000 }
const LIMIT_MS = 60000
const POLL_MS = 200
const POLL_MAX = 50
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const nameOf = error => {
  let found = error
  while (found.cause) found = found.cause
  return found.type || found.name
}

// What needs the coordinator fails until the library knows the new one.
async function patiently(act) {
  const end = Date.now() + LIMIT_MS
  for (;;) {
    try {
      await act()
      return
    } catch (error) {
      if (Date.now() > end) throw error
      await sleep(POLL_MS)
    }
  }
}

class Producer {
  constructor(kafka, settings) {
    const options = { idempotent: true, maxInFlightRequests: 1 }
    if (settings.retries) options.retry = { retries: Number(settings.retries) }
    if (settings['transactional-id']) options.transactionalId = settings['transactional-id']
    this.producer = kafka.producer(options)
    this.sender = this.producer
    this.waiting = []
    this.failed = []
    this.sending = null
  }

  async start() {
    await this.producer.connect()
  }

  // A request has all that waits, and the next one is sent after its answer.
  send(topic, partition, value) {
    this.waiting.push({ topic, partition: Number(partition), value })
    this.sending = this.sending || this.sendWaiting()
  }

  async sendWaiting() {
    await sleep(5)
    while (this.waiting.length) {
      const messages = this.waiting.splice(0)
      const topic = messages[0].topic
      await this.sender
        .send({ topic, acks: -1, messages })
        .catch(error => this.failed.push(nameOf(error)))
    }
    this.sending = null
  }

  async flush() {
    await this.sending
    return this.failed.splice(0)
  }

  async begin() {
    this.sender = await this.producer.transaction()
  }

  async commit() {
    const failed = await this.flush()
    if (failed.length) throw new Error(failed.join(' '))
    await this.sender.commit()
  }

  async abort() {
    await this.flush()
    await this.sender.abort()
  }

  async offset(consumerGroupId, topic, partition, offset) {
    const partitions = [{ partition: Number(partition), offset }]
    const topics = [{ topic, partitions }]
    await patiently(() => this.sender.sendOffsets({ consumerGroupId, topics }))
  }

  async close() {
    await this.producer.disconnect()
  }
}

class Consumer {
  constructor(kafka, settings) {
    const options = { groupId: settings.group, sessionTimeout: 45000, maxWaitTimeInMs: 500 }
    if (settings.rack) options.rackId = settings.rack
    this.consumer = kafka.consumer({ ...options, retry: LIMIT_RETRIES })
    this.topics = settings.topics.split(',')
    this.arrived = []
    this.read = new Map()
  }

  async start() {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: this.topics, fromBeginning: true })
    await this.consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: 4,
      // Waits until a poll has taken it.
      eachMessage: one => new Promise(done => this.arrived.push({ ...one, done })),
    })
  }

  async poll() {
    const values = []
    const end = Date.now() + POLL_MS
    while (values.length < POLL_MAX && Date.now() < end) {
      const one = this.arrived.shift()
      if (!one) {
        await sleep(5)
        continue
      }
      values.push(one.message.value.toString())
      const offset = String(BigInt(one.message.offset) + 1n)
      const place = { topic: one.topic, partition: one.partition }
      this.read.set(`${one.topic} ${one.partition}`, { ...place, offset })
      one.done()
      await sleep(0)
    }
    return values
  }

  async 'commit-offsets'() {
    await patiently(() => this.consumer.commitOffsets([...this.read.values()]))
  }

  async close() {
    for (const one of this.arrived) one.done()
    await this.consumer.disconnect()
  }
}

const KINDS = { produce: Producer, consume: Consumer }
let client

async function obey(line) {
  const [name, ...words] = line.split(' ')
  if (!KINDS[name]) return client[name](...words)
  const settings = Object.fromEntries(words.map(word => word.split(/=(.*)/s).slice(0, 2)))
  const kafka = new Kafka({
    clientId: settings.client,
    brokers: settings.bootstrap.split(','),
    logLevel: logLevel.NOTHING,
    requestTimeout: Number(settings['timeout-ms'] || 30000),
    retry: LIMIT_RETRIES,
  })
  client = new KINDS[name](kafka, settings)
  return client.start()
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    try {
      console.log(['ok', ...((await obey(line)) || [])].join(' '))
    } catch (error) {
      console.log('error', `${nameOf(error)}: ${error.message}`.replaceAll('\n', ' '))
    }
  }
  await Promise.race([client ? client.close() : null, sleep(5000)])
  process.exit(0)
}

main()
