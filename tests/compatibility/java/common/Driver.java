import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Kafka's Java client, unmodified: plays the named features and prints one JSON line for each.
 * Arguments: bootstrap, prefix of the topics' names, features with commas between. Topics are there already.
 * The same sources compile against every version of the client; what differs is in Version.
 */
public final class Driver {
    static final int FEATURES_AT_ONCE = 4;

    interface Feature {
        /** What the other side may want to look at; an error where it did not go as it should. */
        Map<String, Object> play(Cell cell) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, Feature> features = new TreeMap<>();
        Producing.into(features);
        Transactions.into(features);
        Reading.into(features);
        Groups.into(features);
        Assignors.into(features);
        TwoGroups.into(features);
        Resets.into(features);
        Describing.into(features);
        Version.into(features);
        ExecutorService pool = Executors.newFixedThreadPool(FEATURES_AT_ONCE);
        for (String name : arguments[2].split(",")) {
            Cell cell = new Cell(arguments[0], arguments[1] + "-" + name);
            pool.submit(() -> print(name, features.get(name), cell));
        }
        pool.shutdown();
        pool.awaitTermination(10, TimeUnit.MINUTES);
        System.exit(0); // a client that hangs in its close must not keep the process
    }

    static void print(String name, Feature feature, Cell cell) {
        String line;
        long started = System.currentTimeMillis();
        try {
            if (feature == null) throw new AssertionError("the driver does not know it");
            line = "\"ok\":true,\"said\":" + json(feature.play(cell));
        } catch (Throwable error) {
            line = "\"ok\":false,\"why\":" + json(error.toString()) + ",\"trace\":" + json(trace(error));
        }
        String head = "{\"feature\":" + json(name) + ",\"ms\":" + (System.currentTimeMillis() - started) + ",";
        synchronized (Driver.class) {
            System.out.println(head + line + "}");
        }
    }

    static String trace(Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
        StringBuilder text = new StringBuilder();
        if (value instanceof Map) {
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet())
                text.append(text.length() == 0 ? "" : ",").append(json(entry.getKey().toString())).append(":").append(json(entry.getValue()));
            return "{" + text + "}";
        }
        if (value instanceof Iterable) {
            for (Object each : (Iterable<?>) value) text.append(text.length() == 0 ? "" : ",").append(json(each));
            return "[" + text + "]";
        }
        for (char letter : value.toString().toCharArray()) {
            if (letter == '"' || letter == '\\') text.append('\\').append(letter);
            else if (letter < ' ') text.append(String.format("\\u%04x", (int) letter));
            else text.append(letter);
        }
        return "\"" + text + "\"";
    }
}
