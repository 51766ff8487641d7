const WIDTH = 64;
const HEIGHT = 18;

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" />;
  const peak = Math.max(...values, 1);
  const step = WIDTH / (values.length - 1);
  const points = values.map((value, index) => `${index * step},${HEIGHT - 1.5 - (value / peak) * (HEIGHT - 3)}`);
  return (
    <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      <polygon className="sparkline-area" points={`0,${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`} />
      <polyline className="sparkline-line" points={points.join(" ")} />
    </svg>
  );
}
