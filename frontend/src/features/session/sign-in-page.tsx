import { type SyntheticEvent, useEffect, useState } from "react";
import { ApiError } from "../../api/http";
import { useSignIn } from "../../api/session";
import { Button, CodeBlock, Field } from "../../components/controls";
import { AlertIcon } from "../../components/icons";

export function SignInPage({ unreachable }: { unreachable: Error | null }) {
  const signIn = useSignIn();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  useEffect(() => {
    document.title = "Sign in · Highwater";
  }, []);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    signIn.mutate({ email, password });
  };
  return (
    <main className="sign-in">
      <form className="card sign-in-card form" onSubmit={submit}>
        <header>
          <img src={`${import.meta.env.BASE_URL}mark.svg`} width="40" height="40" alt="" />
          <h1>Sign in to Highwater</h1>
        </header>
        <SignInProblem error={signIn.error ?? unreachable} />
        <Field label="Email">
          {(field) => (
            <input
              {...field}
              className="input"
              type="email"
              autoComplete="username"
              required
              autoFocus
              value={email}
              onChange={(event) => setEmail(event.target.value)}
            />
          )}
        </Field>
        <Field label="Password">
          {(field) => (
            <input
              {...field}
              className="input"
              type="password"
              autoComplete="current-password"
              required
              value={password}
              onChange={(event) => setPassword(event.target.value)}
            />
          )}
        </Field>
        <Button tone="primary" type="submit" disabled={signIn.isPending}>
          {signIn.isPending ? "Signing in…" : "Sign in"}
        </Button>
        <p className="muted sign-in-note">
          On your own machine, the login was printed by the command that started Highwater.
        </p>
      </form>
    </main>
  );
}

function SignInProblem({ error }: { error: Error | null }) {
  if (!error) return null;
  if (error instanceof ApiError && error.isServerAway) return <ServerAway />;
  const isWrongLogin = error instanceof ApiError && (error.status === 401 || error.status === 400);
  const advice = isWrongLogin
    ? "Check for typing mistakes and Caps Lock, then try again."
    : error instanceof ApiError
      ? error.advice
      : "";
  return (
    <div className="notice notice-bad" role="alert">
      <AlertIcon />
      <div>
        <strong>{isWrongLogin ? "Email and password do not match." : error.message}</strong>
        <p>{advice}</p>
      </div>
    </div>
  );
}

function ServerAway() {
  return (
    <div className="server-away" role="alert">
      <div className="notice notice-bad">
        <AlertIcon />
        <div>
          <strong>Highwater does not answer.</strong>
          <p>The page is here but the server behind it is not. Start it, then try again:</p>
        </div>
      </div>
      <CodeBlock label="In the project folder" code="make run" />
    </div>
  );
}
