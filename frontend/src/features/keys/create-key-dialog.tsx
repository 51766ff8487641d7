import { type SyntheticEvent, useState } from "react";
import { useCreateApiKey } from "../../api/keys";
import type { NewApiKey } from "../../api/types";
import { Button, Field } from "../../components/controls";
import { Dialog } from "../../components/dialog";

export function CreateKeyDialog(props: { onClose: () => void; onCreated: (key: NewApiKey) => void }) {
  const [name, setName] = useState("");
  const create = useCreateApiKey();
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (name.trim() && !create.isPending) create.mutate(name.trim(), { onSuccess: props.onCreated });
  };
  return (
    <Dialog title="Create an API key" onClose={props.onClose}>
      <form className="form" onSubmit={submit}>
        <Field
          label="Name"
          hint="What will use it, so that you know what stops when you revoke it."
          error={create.error?.message}
        >
          {(field) => (
            <input
              {...field}
              data-autofocus
              className="input"
              autoComplete="off"
              placeholder="checkout service"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div className="form-actions">
          <Button onClick={props.onClose}>Cancel</Button>
          <Button tone="primary" type="submit" disabled={!name.trim() || create.isPending}>
            {create.isPending ? "Creating…" : "Create key"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
