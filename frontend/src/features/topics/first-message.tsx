// The empty state teaches: a first message in about a minute.
import { useWriteAccess } from "../../api/session";
import type { Tenant } from "../../api/types";
import { Button } from "../../components/controls";
import { PlusIcon } from "../../components/icons";
import { Link } from "../../components/router";
import { SnippetTabs } from "../../components/snippet-tabs";
import { produceSnippets } from "../../components/snippets";

export function FirstMessage({ tenant, onCreate }: { tenant: Tenant | undefined; onCreate: () => void }) {
  const writeAccess = useWriteAccess();
  const bootstrap = tenant?.kafka_bootstrap ?? "127.0.0.1:9102";
  return (
    <section className="card first-message">
      <header>
        <h2>Your first message, in about a minute</h2>
        <p className="muted">Any Kafka client works. Records appear here the moment they are written.</p>
      </header>
      <ol>
        <li>
          <div>
            <strong>Create a topic</strong>
            <p className="muted">
              A topic is a named log. One partition is enough to start with; you can add more later.
            </p>
          </div>
          <Button tone="primary" onClick={onCreate} {...writeAccess}>
            <PlusIcon />
            Create topic
          </Button>
        </li>
        <li>
          <div>
            <strong>Get an API key</strong>
            <p className="muted">It signs your client in, over Kafka and over REST.</p>
          </div>
          <Link className="button button-plain" href="/keys">
            To the API keys
          </Link>
        </li>
        <li>
          <div>
            <strong>Send something</strong>
            <p className="muted">Put in your key and run one of these, then open the topic and see it arrive.</p>
            <SnippetTabs snippets={produceSnippets({ bootstrap, origin: location.origin, topic: "hello" })} />
          </div>
        </li>
      </ol>
    </section>
  );
}
