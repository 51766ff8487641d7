// The one time that a secret is shown.
import type { NewApiKey } from "../../api/types";
import { Button, CopyButton } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { SnippetTabs } from "../../components/snippet-tabs";
import { clientSnippets } from "../../components/snippets";

interface NewSecretProps {
  apiKey: NewApiKey;
  bootstrap: string | undefined;
  onClose: () => void;
}

export function NewSecretDialog({ apiKey, bootstrap, onClose }: NewSecretProps) {
  const snippets = clientSnippets({
    bootstrap: bootstrap ?? "127.0.0.1:9102",
    origin: location.origin,
    topic: "hello",
    keyId: apiKey.id,
    secret: apiKey.secret,
  });
  return (
    <Dialog title={`Key “${apiKey.name}” is ready`} onClose={onClose} size="wide">
      <div className="form">
        <div className="notice notice-warn">
          <div>
            <strong>Copy the secret now: it is not shown again.</strong>
            <p>Only a one-way verifier of it is kept. If you lose it, create another key.</p>
          </div>
        </div>
        <dl className="secret-pair">
          <dt>Key id</dt>
          <dd>
            <code>{apiKey.id}</code>
            <CopyButton text={apiKey.id} />
          </dd>
          <dt>Secret</dt>
          <dd>
            <code data-testid="secret">{apiKey.secret}</code>
            <CopyButton text={apiKey.secret} label="Copy secret" isFirst />
          </dd>
        </dl>
        <h3>Ready to paste</h3>
        <SnippetTabs snippets={snippets} />
        <div className="form-actions">
          <Button tone="primary" onClick={onClose}>
            I have copied it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
