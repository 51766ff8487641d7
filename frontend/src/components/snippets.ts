// Ready-to-paste client commands. Pure: what is known goes in, text comes out; what is not known stays a placeholder.

export interface Target {
  bootstrap: string;
  origin: string;
  topic: string;
  keyId?: string;
  secret?: string;
}

export interface Snippet {
  id: string;
  label: string;
  code: string;
}

const key = (target: Target): string => target.keyId ?? "KEY_ID";
const secret = (target: Target): string => target.secret ?? "SECRET";

/** Only a plaintext listener on this machine does without TLS. */
export const securityProtocol = (bootstrap: string): string =>
  /^(localhost|127\.|\[::1\])/.test(bootstrap) ? "SASL_PLAINTEXT" : "SASL_SSL";

function kcat(target: Target): string {
  return [
    `echo 'hello' | kcat -P -b ${target.bootstrap} -t ${target.topic} \\`,
    `  -X security.protocol=${securityProtocol(target.bootstrap)} -X sasl.mechanism=PLAIN \\`,
    `  -X sasl.username=${key(target)} -X sasl.password=${secret(target)}`,
  ].join("\n");
}

function curl(target: Target): string {
  return [
    `curl -u ${key(target)}:${secret(target)} \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '{"records":[{"key":"k1","value":{"hello":"world"}}]}' \\`,
    `  ${target.origin}/api/v1/topics/${target.topic}/records`,
  ].join("\n");
}

function python(target: Target): string {
  return [
    "# pip install confluent-kafka",
    "from confluent_kafka import Producer",
    "",
    "producer = Producer({",
    `    "bootstrap.servers": "${target.bootstrap}",`,
    `    "security.protocol": "${securityProtocol(target.bootstrap)}",`,
    `    "sasl.mechanism": "PLAIN",`,
    `    "sasl.username": "${key(target)}",`,
    `    "sasl.password": "${secret(target)}",`,
    "})",
    `producer.produce("${target.topic}", key="k1", value="hello")`,
    "producer.flush()",
  ].join("\n");
}

function properties(target: Target): string {
  const module = "org.apache.kafka.common.security.plain.PlainLoginModule";
  return [
    `bootstrap.servers=${target.bootstrap}`,
    `security.protocol=${securityProtocol(target.bootstrap)}`,
    "sasl.mechanism=PLAIN",
    `sasl.jaas.config=${module} required \\`,
    `  username="${key(target)}" \\`,
    `  password="${secret(target)}";`,
  ].join("\n");
}

export const produceSnippets = (target: Target): Snippet[] => [
  { id: "kcat", label: "kcat", code: kcat(target) },
  { id: "curl", label: "curl", code: curl(target) },
  { id: "python", label: "Python", code: python(target) },
];

export const clientSnippets = (target: Target): Snippet[] => [
  { id: "properties", label: "Java", code: properties(target) },
  ...produceSnippets(target),
];
